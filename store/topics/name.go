package topics

import "strings"

// NameMax is the longest topic name, in bytes. Kafka's limit: it leaves room for a
// partition number in a file name.
const NameMax = 249

// Reserved tells whether a name belongs to the gateway itself: clients can neither
// create, delete nor write such a topic.
func Reserved(name string) bool { return strings.HasPrefix(name, "__") }

// CheckName says what is wrong with a topic's name; "" if nothing is.
func CheckName(name string) string {
	switch {
	case name == "":
		return "the empty string is not allowed"
	case name == "." || name == "..":
		return "'.' and '..' are not allowed"
	case len(name) > NameMax:
		return "the name is longer than 249 characters"
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
		}
	}
	return ""
}

// collisionKey is equal for names that Kafka's metrics cannot tell apart, which is
// why it refuses the second of them.
func collisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }
