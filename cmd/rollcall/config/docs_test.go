package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md from the table of keys")

const docFile = "../../../docs/configuration.md"

// TestDocumentation keeps docs/configuration.md equal to the table of keys.
func TestDocumentation(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/configuration.md is not what the table of keys says; run: go test ./cmd/rollcall/config -run Documentation -update")
	}
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made from the table in cmd/rollcall/config/keys.go; a test compares. -->

Keys have Kafka's names and, unless said otherwise, Kafka's defaults. A value comes from the first of these that has one:

1. a flag of ` + "`rollcall serve`" + `;
2. the environment: ` + "`ROLLCALL_`" + ` and the key in capitals with ` + "`_`" + ` for ` + "`.`" + `, as in ` + "`ROLLCALL_GROUP_MAX_SIZE`" + `;
3. the file named by ` + "`--config`" + ` or ` + "`ROLLCALL_CONFIG`" + `: YAML, flat, ` + "`group.max.size: 500`" + `;
4. the default.

An unknown key and a value out of range are errors. ` + "`rollcall config check`" + ` tells without starting anything,
` + "`rollcall config show`" + ` prints every value and where it came from, and so does ` + "`rollcall serve`" + ` in its log when it starts.
Numbers are whole; names that end in ` + "`.ms`, `.minutes` and `.bytes`" + ` say their unit. A key marked ° is Rollcall's own: Kafka has none of that name.
`)
	section := ""
	for i := range Keys {
		k := &Keys[i]
		if k.Section != section {
			section = k.Section
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | accepted | what it does |\n|---|---|---|---|---|\n", section)
		}
		name, def := "`"+k.Name+"`", "`"+k.Default+"`"
		if k.Own {
			name += " °"
		}
		if k.Default == "" {
			def = "(empty)"
		}
		doc := k.Doc
		if k.Secret {
			doc += " Never shown."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, k.Type, def, k.Range, doc)
	}
	b.WriteString(`
## Kafka's keys that are not used

Of Kafka's other keys the following are known. Those that only tune Kafka's insides are accepted with a warning, so that the settings of a
broker can be kept; those whose absence changes what a user gets are refused, as are all that begin with ` +
		"`ssl.`, `sasl.` or `listener.name.`" + `.

| key | | why |
|---|---|---|
`)
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		what := "accepted, no effect"
		if foreign[name].refused {
			what = "refused"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, what, foreign[name].why)
	}
	return b.String()
}
