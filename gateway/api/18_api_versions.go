package api

import "github.com/twmb/franz-go/pkg/kmsg"

// ApiVersions, key 18, versions 0 to 5.

func (t *Table) apiVersionsEntry() Entry {
	return Entry{Key: 18, Min: 0, Max: 5, Handle: t.apiVersions}
}

func (t *Table) apiVersions(c *Call) {
	resp := &kmsg.ApiVersionsResponse{Version: c.Version}
	resp.Default()
	resp.ApiKeys = t.rows
	c.Respond(resp)
}
