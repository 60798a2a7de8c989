package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersions, key 18, versions 0 to 5: version 1 has a throttle time, 3 is
// flexible (but not its response header) and names the client's software (KIP-511),
// 4 shows features whose lowest version is 0 (KIP-1022), 5 says which node of which
// cluster the client means (KIP-1242). A version that is not served is answered by
// package protocol, in version 0.
//
// Differs from Kafka: [fewer-features]; [fewer-keys].

const (
	apiVersionsKey = 18
	apiVersionsMax = 5
)

func (t *Table) apiVersionsEntry() Entry {
	return Entry{Key: apiVersionsKey, Min: 0, Max: apiVersionsMax, Handle: t.apiVersions}
}

func (t *Table) apiVersions(c *Call) {
	req := c.Msg.(*kmsg.ApiVersionsRequest)
	resp := &kmsg.ApiVersionsResponse{Version: c.Version}
	resp.Default()
	if resp.ErrorCode = t.refusedApiVersions(c, req); resp.ErrorCode == 0 {
		resp.ApiKeys = t.rows
		t.features(resp)
		c.Session.SoftwareName, c.Session.SoftwareVersion = req.ClientSoftwareName, req.ClientSoftwareVersion
	}
	c.Respond(resp)
}

// features tells clients to use transactions of version 2 (KIP-890), if there are any.
// A feature whose lowest version is 0 is shown as supported from version 4 on only.
func (t *Table) features(resp *kmsg.ApiVersionsResponse) {
	if t.entry(endTxnKey) == nil {
		return
	}
	const name, highest = "transaction.version", 2
	if resp.Version >= 4 {
		resp.SupportedFeatures = []kmsg.ApiVersionsResponseSupportedFeature{{Name: name, MaxVersion: highest}}
	}
	resp.FinalizedFeaturesEpoch = 0 // they never change
	resp.FinalizedFeatures = []kmsg.ApiVersionsResponseFinalizedFeature{{Name: name, MinVersionLevel: highest, MaxVersionLevel: highest}}
}

func (t *Table) refusedApiVersions(c *Call, req *kmsg.ApiVersionsRequest) int16 {
	if c.Version >= 3 && !(validSoftware(req.ClientSoftwareName) && validSoftware(req.ClientSoftwareVersion)) {
		return kerr.InvalidRequest.Code
	}
	if c.Version < 5 || req.ClusterID == nil && req.NodeID == -1 {
		return 0
	}
	if req.ClusterID == nil || req.NodeID == -1 { // both or none
		return kerr.InvalidRequest.Code
	}
	if cluster := t.cluster.Get(); *req.ClusterID != cluster.ID || req.NodeID != cluster.NodeID {
		return kerr.RebootstrapRequired.Code
	}
	return 0
}

// validSoftware tells whether a name or version consists of letters, digits, dots
// and hyphens, with a letter or digit at both ends (KIP-511).
func validSoftware(s string) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		inner := b == '.' || b == '-'
		alnum := '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !alnum && (!inner || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != ""
}
