package store

import (
	"testing"
)

// FuzzInfo reads anything as the description of a store, as it stands in FORMAT and in
// both Pebbles. What is read has a format, and is written and read as the same again.
func FuzzInfo(f *testing.F) {
	f.Add(encodeInfo(newInfo(&Options{Version: "v1", Shards: 50, formats: &currentFormats})))
	f.Add([]byte(`{"format": 99, "writtenBy": "v9", "shards": {"more": "than a number"}}`))
	f.Add([]byte(`{"format": 4294967296}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := decodeInfo(data)
		if err != nil {
			return
		}
		if info.FormatVersion == 0 {
			t.Error("a store without a format")
		}
		if again, err := decodeInfo(encodeInfo(info)); err != nil || again != info {
			t.Errorf("%+v is written and read as %+v, %v", info, again, err)
		}
	})
}
