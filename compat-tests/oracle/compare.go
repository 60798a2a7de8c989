package oracle

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Difference is one that is known, with what it looks like in answers.
type Difference struct {
	// ID is that of its line in docs/divergence.md.
	ID string
	// Why is its reason.
	Why string
	// Answers are pairs of patterns: what Kafka and what Rollcall says.
	Answers []Pair
	// Sorted: it is about the order of a list, which is not shown.
	Sorted bool
	// In names the scenarios that meet it.
	In []string
	// Search: random scenarios may meet it.
	Search bool
	// Elsewhere says why no scenario can meet it, and where it is tested.
	Elsewhere string
}

// Pair is an answer of Kafka's and the one that Rollcall gives instead; nil for none.
type Pair struct{ kafka, rollcall *regexp.Regexp }

// LoadDifferences reads the file of known differences. An entry is
//
//	== ID
//	the reason, as text
//	- PATTERN            an answer of Kafka's, nested lines joined by " | "
//	+ PATTERN            what Rollcall answers instead; either may stand alone
//	in SCENARIO ...      where; each of them has to meet it
//	search               random scenarios may meet it too
//	sorted               it is about the order of a list, which is not shown
//	elsewhere WHERE      no scenario can meet it
//
// In a pattern * is any text, the same one on both sides, and ** is any text.
func LoadDifferences(file string) ([]*Difference, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []*Difference
	var d *Difference
	for i, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case word == "==":
			d = &Difference{ID: rest}
			all = append(all, d)
		case d == nil:
			return nil, fmt.Errorf("%s:%d: before the first entry", file, i+1)
		case word == "-":
			d.Answers = append(d.Answers, Pair{kafka: pattern(rest)})
		case word == "+":
			if last := len(d.Answers) - 1; last >= 0 && d.Answers[last].rollcall == nil && strings.HasPrefix(previous(string(text), i), "- ") {
				d.Answers[last].rollcall = pattern(rest)
			} else {
				d.Answers = append(d.Answers, Pair{rollcall: pattern(rest)})
			}
		case word == "in":
			d.In = append(d.In, strings.Fields(rest)...)
		case line == "search":
			d.Search = true
		case line == "sorted":
			d.Sorted = true
		case word == "elsewhere":
			d.Elsewhere = rest
		default:
			d.Why = strings.TrimSpace(d.Why + " " + line)
		}
	}
	return all, nil
}

// previous is the line before line i.
func previous(text string, i int) string {
	return strings.Split(text, "\n")[i-1]
}

func pattern(text string) *regexp.Regexp {
	text = regexp.QuoteMeta(text)
	text = strings.ReplaceAll(text, `\*\*`, `.*`)
	return regexp.MustCompile("^" + strings.ReplaceAll(text, `\*`, `(.*?)`) + "$")
}

// A Comparison is what Compare found.
type Comparison struct {
	// Met has the ids of the differences that were met.
	Met map[string]bool
	// Wrong describes the first difference that is not known; empty if all are.
	Wrong string
}

// Compare compares what Kafka and Rollcall answered, where allowed lists the
// differences that the scenario may meet.
func Compare(s *Scenario, kafka, rollcall [][]string, allowed []*Difference) Comparison {
	c := Comparison{Met: map[string]bool{}}
	for i := range s.Lines {
		if wrong := c.step(kafka[i], rollcall[i], allowed); wrong != "" {
			c.Wrong = fmt.Sprintf("%s, step %d: %s\n%s", s.Name, i+1, s.Lines[i].Text, wrong)
			return c
		}
	}
	return c
}

// step compares the answers of one step and describes what is wrong with them.
func (c *Comparison) step(kafka, rollcall []string, allowed []*Difference) string {
	for i, j := 0, 0; i < len(kafka) || j < len(rollcall); {
		var k, r string
		if i < len(kafka) {
			k = flat(kafka[i])
		}
		if j < len(rollcall) {
			r = flat(rollcall[j])
		}
		if k == r {
			i, j = i+1, j+1
			continue
		}
		d, pair := find(allowed, k, r)
		if d == nil {
			return "Kafka:    " + strings.Join(kafka, "\n          ") + "\nRollcall: " + strings.Join(rollcall, "\n          ")
		}
		c.Met[d.ID] = true
		if pair.kafka != nil {
			i++
		}
		if pair.rollcall != nil {
			j++
		}
	}
	return ""
}

// find looks for the difference between two answers: first one that explains both.
func find(allowed []*Difference, k, r string) (*Difference, Pair) {
	for _, both := range []bool{true, false} {
		for _, d := range allowed {
			for _, p := range d.Answers {
				if both == (p.kafka != nil && p.rollcall != nil) && p.matches(k, r) {
					return d, p
				}
			}
		}
	}
	return nil, Pair{}
}

func (p Pair) matches(k, r string) bool {
	var a, b []string
	if p.kafka != nil {
		if a = p.kafka.FindStringSubmatch(k); a == nil {
			return false
		}
	}
	if p.rollcall != nil {
		if b = p.rollcall.FindStringSubmatch(r); b == nil {
			return false
		}
	}
	if p.kafka == nil || p.rollcall == nil {
		return true
	}
	n := min(len(a), len(b))
	return slices.Equal(a[1:n], b[1:n])
}

// flat is an answer in one line.
func flat(answer string) string {
	lines := strings.Split(answer, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, " | ")
}
