package protocol

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// MinHeaderBytes is the length of the shortest request header: key, version,
// correlation id and a null client id.
const MinHeaderBytes = 10

// Header is what comes before the body of a request.
type Header struct {
	Key           int16
	Version       int16
	CorrelationID int32
	// ClientID aliases the frame; nil if it is null.
	ClientID []byte
	// TooNew: an ApiVersions request of a version that is not served. Its body
	// cannot be read; the answer is [Table.ApiVersionsTooNew].
	TooNew bool
	layout *versionLayout
}

// ReadHeader reads the header of a frame (without its length) and returns the body
// that follows. The error is a *[RequestError].
func (t *Table) ReadHeader(frame []byte) (h Header, body []byte, err error) {
	if len(frame) < MinHeaderBytes {
		return h, nil, &RequestError{Problem: MalformedHeader, Key: -1, Version: -1, Detail: "too short"}
	}
	h.Key = int16(binary.BigEndian.Uint16(frame))
	h.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	h.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	l, problem := t.lookup(h.Key, h.Version)
	flexible := l != nil && l.flexible
	if problem == UnsupportedVersion && h.Key == keyApiVersions {
		h.TooNew = true
		flexible = h.Version >= flexibleApiVersions
	} else if problem != 0 {
		return h, nil, &RequestError{Problem: problem, Key: h.Key, Version: h.Version}
	}
	h.layout = l
	body = frame[MinHeaderBytes:]
	if n := int(int16(binary.BigEndian.Uint16(frame[8:]))); n >= 0 {
		if n > len(body) {
			return h, nil, h.malformed("ClientId")
		}
		h.ClientID, body = body[:n:n], body[n:]
	}
	if flexible {
		c := checker{src: body}
		if !c.tags(&layout{}) {
			return h, nil, h.malformed("tagged fields")
		}
		body = c.src
	}
	return h, body, nil
}

func (h *Header) malformed(detail string) error {
	return &RequestError{Problem: MalformedHeader, Key: h.Key, Version: h.Version, Detail: detail}
}

// A body may take this much memory when decoded, besides the frame itself: what
// real requests need stays below four times the frame; the rest is for small ones.
const (
	inflationFactor = 16
	inflationFree   = 64 << 10
)

// Check walks a body and tells how many bytes of memory [Table.Decode] will take
// for it at most, besides the frame. The error is a *[RequestError].
func (t *Table) Check(h *Header, body []byte) (memory int, err error) {
	_, memory, bad := check(body, &h.layout.body, h.layout.flexible)
	if bad != "" {
		return memory, &RequestError{Problem: MalformedBody, Key: h.Key, Version: h.Version, Detail: bad}
	}
	if memory > inflationFree+inflationFactor*len(body) {
		return memory, &RequestError{Problem: Inflated, Key: h.Key, Version: h.Version}
	}
	return memory, nil
}

// Decode decodes a body that [Table.Check] let pass. Strings are copied out of the
// frame; fields of bytes alias it. What follows a complete body is ignored, as in
// Kafka. The error is a *[RequestError].
func (t *Table) Decode(h *Header, body []byte) (kmsg.Request, error) {
	req := kmsg.RequestForKey(h.Key)
	req.SetVersion(h.Version)
	if err := req.ReadFrom(body); err != nil {
		return nil, &RequestError{Problem: MalformedBody, Key: h.Key, Version: h.Version, Detail: err.Error()}
	}
	return req, nil
}

// AppendResponse appends a whole response frame: length, header and body in the
// version that resp is set to.
func (t *Table) AppendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(correlationID))
	if key := resp.Key(); key != keyApiVersions && t.Flexible(key, resp.GetVersion()) {
		dst = append(dst, 0) // no tagged fields
	}
	dst = resp.AppendTo(dst)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
