package oracle

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// advertised are the versions of the group APIs that Apache Kafka 4.4 and Rollcall
// advertise; versions_api_versions has both saying so.
var advertised = map[string][2]int{
	"OffsetCommit": {2, 10}, "OffsetFetch": {1, 10}, "FindCoordinator": {0, 6}, "JoinGroup": {0, 9},
	"Heartbeat": {0, 4}, "LeaveGroup": {0, 5}, "SyncGroup": {0, 5}, "DescribeGroups": {0, 6}, "ListGroups": {0, 5},
	"ApiVersions": {0, 5}, "DeleteGroups": {0, 3}, "OffsetDelete": {0, 0},
}

var requestStep = regexp.MustCompile(`> \S+ (\w+) v(\d+)\b`)

// TestVersionsAreCovered wants an answer of Apache Kafka's to each version of each
// request about groups, and prints how many there are.
func TestVersionsAreCovered(t *testing.T) {
	all, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	answered, total := map[string]int{}, 0
	for _, s := range all {
		for _, l := range s.Lines {
			m := requestStep.FindStringSubmatch(l.Text)
			if m == nil || l.Prose() {
				continue
			}
			for _, a := range l.Answers {
				if strings.Fields(a)[1] == m[1] {
					answered[m[1]+" v"+m[2]]++
				}
			}
			total += len(l.Answers)
		}
	}
	for name := range apis {
		versions, ok := advertised[name]
		if !ok {
			t.Errorf("nobody says which versions of %s there are", name)
		}
		var counts []string
		for v := versions[0]; v <= versions[1]; v++ {
			key := fmt.Sprintf("%s v%d", name, v)
			if answered[key] == 0 {
				t.Errorf("no scenario has an answer to %s", key)
			}
			counts = append(counts, fmt.Sprintf("v%d: %d", v, answered[key]))
		}
		t.Logf("%s: %s", name, strings.Join(counts, ", "))
	}
	t.Logf("%d scenarios with %d answers", len(all), total)
}

// The sections of docs/divergence.md that are about groups.
var groupSection = regexp.MustCompile(`^## (All group APIs$|.*\((8|9|1[0-6]|18|42|47)\)$)`)

// TestDifferencesAreWrittenDown compares differences.txt with docs/divergence.md:
// both have the same differences of the group APIs. TestReplay sees that they are met.
func TestDifferencesAreWrittenDown(t *testing.T) {
	known, err := LoadDifferences("differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/divergence.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	about := false
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			about = groupSection.MatchString(line)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if about && strings.HasPrefix(line, "| ") && id != "id" {
			documented = append(documented, id)
		}
	}
	all, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range known {
		switch {
		case d.Why == "":
			t.Errorf("%s has no reason", d.ID)
		case slices.Contains(ids, d.ID):
			t.Errorf("%s stands twice", d.ID)
		case !slices.Contains(documented, d.ID):
			t.Errorf("%s is not in docs/divergence.md among the group APIs", d.ID)
		case (d.Elsewhere != "") == (d.Sorted || len(d.In) > 0):
			t.Errorf("%s must either be met by scenarios or say where it is tested", d.ID)
		}
		ids = append(ids, d.ID)
		for _, name := range d.In {
			if !slices.ContainsFunc(all, func(s *Scenario) bool { return s.Name == name }) {
				t.Errorf("%s: there is no scenario %s", d.ID, name)
			}
		}
	}
	for _, id := range documented {
		if !slices.Contains(ids, id) {
			t.Errorf("differences.txt does not have %s, which docs/divergence.md has", id)
		}
	}
	for path, id := range unordered {
		if !slices.ContainsFunc(known, func(d *Difference) bool { return d.ID == id && d.Sorted }) {
			t.Errorf("%s is shown sorted because of %s, which differences.txt does not have", path, id)
		}
	}
}
