package group

// Rule names a rule of the protocol: a cell of the table in doc.go.
type Rule uint8

// The rules of the membership. Those of the offsets begin at firstOffsetRule.
const (
	noRule Rule = iota
	J1
	J2
	J3
	J4
	J5
	J6
	J7
	J8
	J9
	J10
	J11
	J12
	J13
	J14
	J15
	J16
	J17
	J18
	J19
	J20
	J21
	J22
	J23
	J24
	J25
	S1
	S2
	S3
	S4
	S5
	S6
	S7
	S8
	S9
	S10
	S11
	S12
	H1
	H2
	H3
	H4
	H5
	H6
	L1
	L2
	L3
	L4
	L5
	R1
	R2
	R3
	R4
	R5
	R6
	R7
	R8
	R9
	R10
	T1
	T2
	T3
	T4
	T5
	T6
	M1
	M2
	M3
	M4
	D1
	D2
	D3
	D4
)

// firstOffsetRule is the first of the O rules, which are declared with the code
// of the offsets; offsetRuleNames has their names.
const firstOffsetRule Rule = 128

var ruleNames = [...]string{
	noRule: "",
	J1:     "J1", J2: "J2", J3: "J3", J4: "J4", J5: "J5", J6: "J6", J7: "J7", J8: "J8", J9: "J9",
	J10: "J10", J11: "J11", J12: "J12", J13: "J13", J14: "J14", J15: "J15", J16: "J16", J17: "J17",
	J18: "J18", J19: "J19", J20: "J20", J21: "J21", J22: "J22", J23: "J23", J24: "J24", J25: "J25",
	S1: "S1", S2: "S2", S3: "S3", S4: "S4", S5: "S5", S6: "S6", S7: "S7", S8: "S8", S9: "S9",
	S10: "S10", S11: "S11", S12: "S12",
	H1: "H1", H2: "H2", H3: "H3", H4: "H4", H5: "H5", H6: "H6",
	L1: "L1", L2: "L2", L3: "L3", L4: "L4", L5: "L5",
	R1: "R1", R2: "R2", R3: "R3", R4: "R4", R5: "R5", R6: "R6", R7: "R7", R8: "R8", R9: "R9", R10: "R10",
	T1: "T1", T2: "T2", T3: "T3", T4: "T4", T5: "T5", T6: "T6",
	M1: "M1", M2: "M2", M3: "M3", M4: "M4",
	D1: "D1", D2: "D2", D3: "D3", D4: "D4",
}

// String returns the rule's id, such as "J7".
func (r Rule) String() string {
	if r >= firstOffsetRule {
		return offsetRuleNames[r-firstOffsetRule]
	}
	return ruleNames[r]
}
