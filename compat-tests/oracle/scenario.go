package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Scenario is a parsed scenario.
type Scenario struct {
	Name  string
	Lines []Line
}

// Line is a step with the answers that follow it, or prose.
type Line struct {
	// Text is the line as it stands in the file; empty for an empty line.
	Text string
	// Answers are what the broker said, each without "< ", nested lines indented.
	Answers []string
}

// Prose tells whether the line is a comment or empty.
func (l *Line) Prose() bool { return l.Text == "" || strings.HasPrefix(l.Text, "#") }

// Defaults is the broker's configuration where a scenario says nothing else: no
// initial delay and short sessions, so that most scenarios take no time.
var Defaults = map[string]string{
	"group.initial.rebalance.delay.ms": "0",
	"group.min.session.timeout.ms":     "100",
	"auto.create.topics.enable":        "false",
	"offsets.topic.num.partitions":     "4",
}

// Parse reads a scenario.
func Parse(name, text string) (*Scenario, error) {
	s := &Scenario{Name: name}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		answer, isAnswer := strings.CutPrefix(line, "< ")
		isNested := strings.HasPrefix(line, " ")
		if !isAnswer && !isNested {
			s.Lines = append(s.Lines, Line{Text: strings.TrimRight(line, " ")})
			continue
		}
		if len(s.Lines) == 0 || s.Lines[len(s.Lines)-1].Prose() {
			return nil, fmt.Errorf("%s:%d: an answer without a step before it", name, i+1)
		}
		last := &s.Lines[len(s.Lines)-1]
		switch {
		case isAnswer:
			last.Answers = append(last.Answers, answer)
		case len(last.Answers) == 0:
			return nil, fmt.Errorf("%s:%d: an indented line without an answer before it", name, i+1)
		default:
			last.Answers[len(last.Answers)-1] += "\n" + line
		}
	}
	return s, nil
}

// Load reads all scenarios of a directory, by name.
func Load(dir string) ([]*Scenario, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []*Scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := Parse(strings.TrimSuffix(filepath.Base(file), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Text is the scenario as a file.
func (s *Scenario) Text() string {
	var b strings.Builder
	for _, l := range s.Lines {
		b.WriteString(l.Text + "\n")
		for _, a := range l.Answers {
			b.WriteString("< " + a + "\n")
		}
	}
	return b.String()
}

// With is the same scenario with other answers, one list for each line.
func (s *Scenario) With(answers [][]string) *Scenario {
	c := &Scenario{Name: s.Name, Lines: slices.Clone(s.Lines)}
	for i := range c.Lines {
		c.Lines[i].Answers = answers[i]
	}
	return c
}

// Broker is the configuration that the scenario needs, without the defaults.
func (s *Scenario) Broker() map[string]string {
	set := map[string]string{}
	for _, l := range s.Lines {
		words := strings.Fields(l.Text)
		if len(words) == 0 || words[0] != "broker" {
			continue
		}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			set[key] = value
		}
	}
	return set
}

// Restarts lists the steps that stop and start the broker, in order.
func (s *Scenario) Restarts() string {
	var ops []string
	for _, l := range s.Lines {
		if l.Text == "stop" || l.Text == "kill" || l.Text == "start" {
			ops = append(ops, l.Text)
		}
	}
	return strings.Join(ops, " ")
}

// words splits a line at spaces that are neither in quotes nor in parentheses.
func words(line string) []string { return split(line, ' ') }

// list splits a value at commas; an empty value is an empty list.
func list(value string) []string {
	if value == "" || value == "none" {
		return nil
	}
	return split(value, ',')
}

// split cuts text at a separator outside quotes and parentheses.
func split(text string, sep byte) []string {
	var out []string
	quoted, depth, start := false, 0, 0
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == sep && !quoted && depth == 0 {
			if sep != ' ' || i > start {
				out = append(out, text[start:i])
			}
			start = i + 1
			continue
		}
		switch text[i] {
		case '"':
			quoted = !quoted
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		case '\\':
			i++
		}
	}
	return out
}

// Duration is how long a scenario waits by itself, at least.
func (s *Scenario) Duration() time.Duration {
	var total, marked time.Duration
	for _, l := range s.Lines {
		w := strings.Fields(l.Text)
		switch {
		case len(w) == 1 && w[0] == "mark":
			marked = 0
		case len(w) == 2 && w[0] == "wait":
			d, _ := time.ParseDuration(w[1]) // Run says what is wrong
			total, marked = total+d, marked+d
		case len(w) == 2 && w[0] == "at":
			d, _ := time.ParseDuration(w[1])
			total, marked = total+max(d-marked, 0), max(d, marked)
		case len(w) > 4 && w[0] == "every":
			d, _ := time.ParseDuration(w[3])
			total, marked = total+d, marked+d
		}
	}
	return total
}
