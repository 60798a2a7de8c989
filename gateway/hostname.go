package gateway

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// javaHost renders the address of a peer as Java's InetAddress does, which is what
// Kafka's tools show for a member: a slash, and for IPv6 all eight groups.
func javaHost(addr net.Addr) string {
	if addr == nil {
		return "/"
	}
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return "/" + addr.String()
	}
	ip := ap.Addr().Unmap()
	if ip.Is4() {
		return "/" + ip.String()
	}
	b := ip.As16()
	var s strings.Builder
	for i := 0; i < len(b); i += 2 {
		if i == 0 {
			s.WriteByte('/')
		} else {
			s.WriteByte(':')
		}
		s.WriteString(strconv.FormatUint(uint64(b[i])<<8|uint64(b[i+1]), 16))
	}
	if zone := ip.Zone(); zone != "" {
		s.WriteString("%" + zone)
	}
	return s.String()
}
