package group

// Rule names a rule of the protocol: a cell of the table in doc.go.
type Rule uint8

// The rules of the membership. Those of the offsets begin at firstOffsetRule.
const (
	noRule Rule = iota
)

// firstOffsetRule is the first of the O rules, which are declared with the code
// of the offsets; offsetRuleNames has their names.
const firstOffsetRule Rule = 128

var ruleNames = [...]string{
	noRule: "",
}

// String returns the rule's id, such as "J7".
func (r Rule) String() string {
	if r >= firstOffsetRule {
		return offsetRuleNames[r-firstOffsetRule]
	}
	return ruleNames[r]
}
