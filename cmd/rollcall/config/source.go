package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// EnvPrefix begins the names of environment variables that set keys.
const EnvPrefix = "ROLLCALL_"

// EnvFile is the environment variable that names the file, as --config does.
const EnvFile = EnvPrefix + "CONFIG"

// serviceLink matches the variables that Kubernetes sets for a service whose name
// begins with "rollcall"; they are addresses, not configuration.
var serviceLink = regexp.MustCompile(`_SERVICE_HOST$|_SERVICE_PORT(_\w+)?$|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$`)

// EnvName is the environment variable of a key.
func EnvName(key string) string {
	return EnvPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// readEnviron calls set for each variable of Rollcall's in the environment.
func readEnviron(environ []string, set func(name, text, source string)) {
	names := map[string]string{}
	for i := range Keys {
		names[EnvName(Keys[i].Name)] = Keys[i].Name
	}
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, EnvPrefix) || variable == EnvFile || serviceLink.MatchString(variable) {
			continue
		}
		name, ok := names[variable]
		if !ok {
			name = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, EnvPrefix)), "_", ".")
		}
		set(name, value, "environment "+variable)
	}
}

// readFile calls set for each key of a YAML file.
func readFile(problems *Error, path string, set func(name, text, source string)) {
	content, err := os.ReadFile(path)
	if err != nil {
		problems.add("cannot read the configuration file: %v", err)
		return
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		problems.add("%s is not YAML: %v", path, oneLine(err))
		return
	}
	if len(doc.Content) == 0 { // an empty file, or only comments
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		problems.add("%s line %d: expected lines of the form KEY: VALUE", path, root.Line)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		source := fmt.Sprintf("%s line %d", path, key.Line)
		if before, ok := seen[key.Value]; ok {
			problems.add("%s: %s was already set in line %d", source, key.Value, before)
			continue
		}
		seen[key.Value] = key.Line
		text, err := scalar(value)
		if err != nil {
			problems.add("%s: %s: %v", source, key.Value, err)
			continue
		}
		set(key.Value, text, source)
	}
}

// scalar returns the text of a value: a scalar, or a list of scalars with commas.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", nil
		}
		return n.Value, nil
	case yaml.AliasNode:
		return scalar(n.Alias)
	case yaml.SequenceNode:
		parts := make([]string, len(n.Content))
		for i, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return "", errors.New("a list may hold plain values only")
			}
			parts[i] = item.Value
		}
		return strings.Join(parts, ","), nil
	default:
		return "", errors.New("keys are flat: write group.max.size: 5, not a block below group")
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
