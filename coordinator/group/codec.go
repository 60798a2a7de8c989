package group

// AppendRecord appends the encoding of a record of group id to dst.
func AppendRecord(dst []byte, id string, rec *Record) []byte { return dst }

// DecodeRecord decodes one record at the start of src and returns what is left.
func DecodeRecord(src []byte) (id string, rec Record, rest []byte, err error) { return }
