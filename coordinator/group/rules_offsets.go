package group

// The rules of the offsets; doc.go has the table that says what each one is.
const (
	ruleO1 Rule = firstOffsetRule + iota
	ruleO2
	ruleO3
	ruleO4
	ruleO5
	ruleO6
	ruleO7
	ruleO8
	ruleO9
	ruleO10
	ruleO11
	ruleO12
	ruleO13
	ruleD1
	ruleD2
	ruleD3
	ruleD4
	ruleD5
	ruleD6
	ruleD7
	ruleD8
	ruleD9
	ruleX1
	ruleX2
	ruleX3
	ruleX4
	ruleX5
	ruleX6
)

var offsetRuleNames = [...]string{
	"O1", "O2", "O3", "O4", "O5", "O6", "O7", "O8", "O9", "O10", "O11", "O12", "O13",
	"D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9",
	"X1", "X2", "X3", "X4", "X5", "X6",
}
