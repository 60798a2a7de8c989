package protocol

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Range is one API and the versions of it that are advertised.
type Range struct{ Key, Min, Max int16 }

const (
	keyProduce     = 0
	keyApiVersions = 18
	// flexibleApiVersions is the first version with the flexible request header;
	// its response header is never flexible (KIP-511).
	flexibleApiVersions = 3
)

// Table knows the layouts of the APIs that are served. It is read-only once made.
type Table struct {
	ranges []Range
	apis   []api // by key
}

type api struct {
	Range
	known    bool
	versions []versionLayout // from Range.Min on
}

type versionLayout struct {
	// served is false for the versions that are advertised only: Produce below 3.
	served   bool
	flexible bool
	body     layout
}

// NewTable makes the table of the given APIs. It fails if one is listed twice, if
// a version has no layout, or if kmsg is too old for it.
func NewTable(ranges []Range) (*Table, error) {
	schemas, err := parseSchemas(requestsText)
	if err != nil {
		return nil, err
	}
	t := &Table{ranges: slices.Clone(ranges)}
	slices.SortFunc(t.ranges, func(a, b Range) int { return cmp.Compare(a.Key, b.Key) })
	for i, r := range t.ranges {
		if i > 0 && t.ranges[i-1].Key == r.Key {
			return nil, fmt.Errorf("API key %d is listed twice", r.Key)
		}
		a, err := compileAPI(r, schemas[r.Key])
		if err != nil {
			return nil, fmt.Errorf("API key %d: %w", r.Key, err)
		}
		t.apis = append(t.apis, make([]api, int(r.Key)+1-len(t.apis))...)
		t.apis[r.Key] = a
	}
	return t, nil
}

func compileAPI(r Range, s *schema) (api, error) {
	a := api{Range: r, known: true}
	if s == nil {
		return a, fmt.Errorf("its layout is not in requests.txt")
	}
	req := kmsg.RequestForKey(r.Key)
	if req == nil || req.MaxVersion() < r.Max {
		return a, fmt.Errorf("kmsg does not know version %d", r.Max)
	}
	if r.Min < 0 || r.Min > r.Max || r.Max > s.valid.max || r.Min < s.valid.min && r.Key != keyProduce {
		return a, fmt.Errorf("versions %d-%d are not within Kafka's %d-%d", r.Min, r.Max, s.valid.min, s.valid.max)
	}
	for v := r.Min; v <= r.Max; v++ {
		l := versionLayout{served: s.valid.has(v), flexible: s.flexible.has(v)}
		var err error
		if l.body, err = compile(s.fields, v, l.flexible); err != nil {
			return a, fmt.Errorf("version %d: %w", v, err)
		}
		a.versions = append(a.versions, l)
	}
	return a, nil
}

// Ranges lists the APIs in the order of their keys. The caller must not change it.
func (t *Table) Ranges() []Range { return t.ranges }

// lookup finds the layout of a request, or why it is not served.
func (t *Table) lookup(key, version int16) (*versionLayout, RequestProblem) {
	if key < 0 || int(key) >= len(t.apis) || !t.apis[key].known {
		return nil, UnknownAPI
	}
	a := &t.apis[key]
	if version < a.Min || version > a.Max || !a.versions[version-a.Min].served {
		return nil, UnsupportedVersion
	}
	return &a.versions[version-a.Min], 0
}

// Flexible tells whether a served version is flexible (KIP-482).
func (t *Table) Flexible(key, version int16) bool {
	l, _ := t.lookup(key, version)
	return l != nil && l.flexible
}

// ApiVersionsTooNew is the answer to an ApiVersions request of a version that is not
// served: UNSUPPORTED_VERSION in the layout of version 0, with ApiVersions itself as
// the only key, from which the client learns the version to ask again with.
func (t *Table) ApiVersionsTooNew() *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	key := kmsg.NewApiVersionsResponseApiKey()
	a := &t.apis[keyApiVersions]
	key.ApiKey, key.MinVersion, key.MaxVersion = keyApiVersions, a.Min, a.Max
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{key}
	return resp
}
