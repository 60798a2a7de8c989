package group

// The rules of the offsets; doc.go has the table that says what each one is.
const (
	O1 Rule = firstOffsetRule + iota
	O2
	O3
	O4
	O5
	O6
	O7
	O8
	O9
	O10
	O11
	O12
	O13
	O14
	O15
	O16
	O17
	O18
	O19
	O20
	O21
	O22
	O23
	O24
	O25
	E1
	E2
	E3
	E4
	E5
	E6
	E7
	E8
	E9
	E10
	X1
	X2
	X3
	X4
	X5
	X6
	X7
	X8
	F1
	F2
	F3
	F4
	F5
)

var offsetRuleNames = [...]string{
	"O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11", "O12", "O13",
	"O14", "O15", "O16", "O17", "O18", "O19", "O20", "O21", "O22", "O23", "O24", "O25",
	"E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "E10",
	"X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8",
	"F1", "F2", "F3", "F4", "F5",
}
