package rollcall_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rollcall-mq/rollcall"

// project stands for every package of this module in a ban.
const project = module + "/..."

// A ban says what a package may not import directly, and why. Patterns are import
// paths; a trailing /... takes in the path itself and all below it.
type ban struct {
	imports []string
	except  []string
	why     string
}

const (
	kmsg   = "github.com/twmb/franz-go/pkg/kmsg/..."
	pebble = "github.com/cockroachdb/pebble/..."
	zap    = "go.uber.org/zap/..."
)

// rules has a row for each package of the product. Data flows one way: socket ->
// protocol -> gateway/api -> coordinator -> shard -> machine -> store.
var rules = map[string][]ban{
	"protocol": {
		{[]string{project}, nil, "bytes and kmsg only, so that it can be fuzzed by itself"},
		{[]string{"net/...", "time", zap}, nil, "it has no sockets, no clock and no voice: errors are returned"},
	},
	"protocol/internal/schemagen": nil, // a generator, not part of the binary
	"coordinator/group": {
		{[]string{"time", "sync/...", "context", "math/rand/...", "crypto/...", "net/...", "os/...", "io/...", "log/...", zap},
			nil, "the machine is pure: time, entropy and configuration come in with events, news goes out as notes"},
		{[]string{kmsg, pebble}, nil, "the machine knows neither the wire nor the disk"},
		{[]string{project}, nil, "everything else feeds the machine; it knows nobody"},
	},
	"coordinator/group/grouptest": nil,
	"coordinator/assignor": {
		{[]string{project}, nil, "an assignor is a function of bytes"},
		{[]string{"time", "sync/...", "math/rand/...", "net", "os/..."}, nil, "the machine calls it, so it is as pure"},
	},
	"coordinator/shard": {
		{[]string{project}, []string{module + "/coordinator/group"}, "the runtime drives machines; it declares the Log that the store satisfies"},
		{[]string{"net/...", kmsg, pebble}, nil, "the runtime knows neither sockets, nor the wire, nor the disk"},
	},
	"coordinator/shard/shardtest": {
		{[]string{project}, []string{module + "/coordinator/shard"}, "a log in memory knows what the log knows"},
	},
	"coordinator": {
		{[]string{project}, []string{module + "/coordinator/group", module + "/coordinator/shard"}, "the router knows shards only"},
		{[]string{kmsg, pebble}, nil, "the router knows neither the wire nor the disk"},
	},
	"coordinator/txn": {
		{[]string{project}, []string{module + "/coordinator", module + "/coordinator/group", module + "/coordinator/shard", module + "/store/topics"},
			"transactions end in topics and in groups, and whoever ends them knows both"},
		{[]string{"net/...", kmsg, pebble, zap}, nil, "it knows neither sockets, nor the wire, nor the disk, and has no voice"},
	},
	"store": {
		{[]string{project}, nil, "the store keeps shards, sequence numbers and bytes, whatever they mean"},
	},
	"store/groups": {
		{[]string{project}, []string{module + "/store"}, "the store keeps shards, sequence numbers and bytes, whatever they mean"},
	},
	"store/topics": {
		{[]string{project}, []string{module + "/store"}, "the store keeps records, whoever sends them"},
		{[]string{"net/...", zap}, nil, "it has no sockets and no voice"},
	},
	"gateway/api": {
		{[]string{module + "/store/..."}, []string{module + "/store/topics"}, "handlers see the engine of topics, not where it is kept"},
		{[]string{"net", pebble, module + "/gateway", module + "/cmd/..."}, nil, "a handler gets a decoded request, not a connection"},
	},
	"gateway": {
		{[]string{module + "/store/...", module + "/coordinator/group", pebble}, nil, "connections move frames; what is in them is the handlers' business"},
	},
	"gateway/memnet": {
		{[]string{project}, nil, "a network knows nobody"},
	},
	"gateway/admin": {
		{[]string{module + "/store/...", pebble}, nil, "it shows what others report to it"},
	},
	"store/named": {
		{[]string{project}, []string{module + "/store"}, "it keeps names and bytes, whatever they mean"},
	},
	"gateway/admin/rest": {
		{[]string{module + "/store/..."}, []string{module + "/store/named"}, "what Kafka has no place for is kept by name; the rest is asked of those who own it"},
		{[]string{pebble, module + "/gateway", module + "/cmd/..."}, nil, "HTTP is another way to the coordinator and the handlers, not to what is below them"},
	},
	"cmd/rollcall": nil,
	"cmd/rollcall/node": {
		{[]string{kmsg}, nil, "it puts parts together and speaks to nobody"},
	},
	"cmd/rollcall/bench": {
		{[]string{project}, nil, "it measures any server, as a client that knows the protocol only"},
	},
	"cmd/rollcall/config": {
		{[]string{project}, []string{module + "/gateway"}, "the configuration knows keys, not who uses them; addresses are the gateway's"},
	},
}

// goFile is one parsed file.
type goFile struct {
	path string // relative to the root of the tree
	dir  string
	test bool
	ast  *ast.File
}

// tree is a parsed source tree.
type tree struct {
	fset  *token.FileSet
	files []goFile
}

// skipped are directories that the checks of this file do not enter: fixtures,
// and what is built or stored at run time.
var skipped = []string{".git", "testdata", "bin", "rollcall-data", "vendor"}

func parseTree(t *testing.T, root string) *tree {
	t.Helper()
	tr := &tree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && slices.Contains(skipped, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(tr.fset, rel, src, parser.ParseComments)
		if err != nil {
			return err
		}
		tr.files = append(tr.files, goFile{rel, path.Dir(rel), strings.HasSuffix(rel, "_test.go"), parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// product is the files that end up in the binary.
func (tr *tree) product() []goFile {
	return slices.DeleteFunc(slices.Clone(tr.files), func(f goFile) bool {
		return f.test || f.dir == "compat-tests" || strings.HasPrefix(f.dir, "compat-tests/") || f.dir == "."
	})
}

func (tr *tree) at(pos token.Pos) string {
	p := tr.fset.Position(pos)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

func matches(patterns []string, imported string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		base, below := strings.CutSuffix(p, "/...")
		return imported == base || below && strings.HasPrefix(imported, base+"/")
	})
}

// checkImports reports every import that a rule bans, and packages without a row.
func checkImports(tr *tree) []string {
	var found []string
	for _, f := range tr.product() {
		bans, known := rules[f.dir]
		if !known {
			found = append(found, f.path+": package "+f.dir+" has no row in the rules of tidy_test.go")
			continue
		}
		for _, spec := range f.ast.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value) // the parser took it
			for _, b := range bans {
				if matches(b.imports, imported) && !matches(b.except, imported) {
					found = append(found, fmt.Sprintf("%s: %s must not import %s: %s", tr.at(spec.Pos()), f.dir, imported, b.why))
				}
			}
		}
	}
	return found
}

// checkDocs reports packages without a package comment.
func checkDocs(tr *tree) []string {
	documented := map[string]bool{}
	for _, f := range tr.product() {
		documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
	}
	var found []string
	for dir, has := range documented {
		if !has {
			found = append(found, dir+": no file has a package comment")
		}
	}
	slices.Sort(found)
	return found
}

// isCall tells whether n calls pkg.name.
func isCall(n ast.Node, pkg string, names ...string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, sel.Sel.Name)
}

// checkSleep reports time.Sleep outside a synctest bubble: outside the arguments
// of synctest.Test and outside functions whose comment says that they run in a
// bubble. Waiting for real time makes tests slow and still wrong on a busy machine.
func checkSleep(tr *tree) []string {
	var found []string
	for _, f := range tr.files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.test && strings.Contains(fn.Doc.Text(), "bubble") {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if isCall(n, "synctest", "Test") {
					return false
				}
				if isCall(n, "time", "Sleep") {
					found = append(found, tr.at(n.Pos())+": time.Sleep outside a synctest bubble")
				}
				return true
			})
		}
	}
	return found
}

// checkMapOrder reports loops over maps in the machine outside functions whose
// name begins with "sorted": order must never come from a map.
func checkMapOrder(t *testing.T, tr *tree, dir string) []string {
	t.Helper()
	var files []*ast.File
	for _, f := range tr.product() {
		if f.dir == dir {
			files = append(files, f.ast)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: importer.ForCompiler(tr.fset, "source", nil)}
	if _, err := conf.Check(dir, tr.fset, files, info); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "sorted") {
				continue
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if isCall(n, "slices", "Sorted", "SortedFunc", "SortedStableFunc") {
					return false
				}
				if isCall(n, "maps", "Keys", "Values", "All") {
					found = append(found, tr.at(n.Pos())+": iterates over a map outside a sorted… function")
				}
				if loop, ok := n.(*ast.RangeStmt); ok {
					if _, isMap := info.Types[loop.X].Type.Underlying().(*types.Map); isMap {
						found = append(found, tr.at(n.Pos())+": range over a map outside a sorted… function")
					}
				}
				return true
			})
		}
	}
	return found
}

// The limits of checkLengths, in lines.
const (
	functionMax     = 70  // of a function, which longPerMille in 1000 may pass
	functionMostMax = 40  // of nine functions in ten
	fileMax         = 600 // of a file
	longPerMille    = 10
)

// checkLengths reports files and functions that do not fit the eye, and the
// distribution of lengths.
func checkLengths(tr *tree) (found []string, report string) {
	type function struct {
		at, name string
		lines    int
	}
	var all []function
	for _, f := range tr.product() {
		if lines := tr.fset.File(f.ast.Pos()).LineCount(); lines > fileMax {
			found = append(found, fmt.Sprintf("%s: %d lines, at most %d", f.path, lines, fileMax))
		}
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				lines := tr.fset.Position(fn.End()).Line - tr.fset.Position(fn.Pos()).Line + 1
				all = append(all, function{tr.at(fn.Pos()), fn.Name.Name, lines})
			}
		}
	}
	if len(all) == 0 {
		return found, "no functions"
	}
	slices.SortFunc(all, func(a, b function) int { return cmp.Compare(a.lines, b.lines) })
	p90 := all[len(all)*9/10].lines
	long := slices.DeleteFunc(slices.Clone(all), func(f function) bool { return f.lines <= functionMax })
	report = fmt.Sprintf("%d functions: median %d lines, nine in ten at most %d, %d over %d",
		len(all), all[len(all)/2].lines, p90, len(long), functionMax)
	if p90 > functionMostMax {
		found = append(found, fmt.Sprintf("nine functions in ten have up to %d lines, at most %d", p90, functionMostMax))
	}
	if len(long)*1000 > len(all)*longPerMille {
		for _, f := range long {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, at most %d (save for %d in 1000)", f.at, f.name, f.lines, functionMax, longPerMille))
		}
	}
	return found, report
}

// The words are put together here so that this file does not report itself.
var (
	toDo       = regexp.MustCompile(`\b` + "TO" + `DO\b`)
	toDoIssue  = regexp.MustCompile(`\b` + "TO" + `DO\(#\d+\)`)
	builderDir = regexp.MustCompile(`(^|[^\w./-])/(` + "wo" + `rk|tmp/` + `wt)/`)
	// conflict matches the first and the last line of what a merge could not decide.
	conflict = regexp.MustCompile(`^(?:<{7}|>{7}) `)
)

// checkText reports marks without an issue number and paths of the machine that
// somebody happened to work on, in all text files.
func checkText(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && file != root && (name != "testdata" && slices.Contains(skipped, name) || name == "tidy"):
			return fs.SkipDir
		case name == ".git" || !d.Type().IsRegular(): // .git is a file in a second work tree
			return nil
		}
		content, err := os.ReadFile(file)
		if err != nil || bytes.IndexByte(content, 0) >= 0 {
			return err
		}
		number := 0
		for line := range bytes.Lines(content) {
			number++
			if len(toDo.FindAll(line, -1)) != len(toDoIssue.FindAll(line, -1)) {
				found = append(found, fmt.Sprintf("%s:%d: a %s needs the number of an issue", file, number, "TO"+"DO"))
			}
			if builderDir.Match(line) {
				found = append(found, fmt.Sprintf("%s:%d: names a directory of one machine", file, number))
			}
			if conflict.Match(line) {
				found = append(found, fmt.Sprintf("%s:%d: a conflict of a merge was left", file, number))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// logEvents returns the events that the product logs: the literal messages of
// calls on loggers, in files that use zap.
func logEvents(tr *tree) map[string]string {
	events := map[string]string{}
	for _, f := range tr.product() {
		if !slices.ContainsFunc(f.ast.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"go.uber.org/zap"` }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			at := slices.Index([]string{"Debug", "Info", "Warn", "Error", "warn", "Check"}, nameOf(sel, ok))
			if at < 0 {
				return true
			}
			arg := 0
			if sel.Sel.Name == "Check" { // its level comes first
				arg = 1
			}
			if len(call.Args) > arg {
				if lit, ok := call.Args[arg].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					event, _ := strconv.Unquote(lit.Value) // the parser took it
					events[event] = tr.at(call.Pos())
				}
			}
			return true
		})
	}
	return events
}

func nameOf(sel *ast.SelectorExpr, ok bool) string {
	if !ok {
		return ""
	}
	return sel.Sel.Name
}

var eventRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestTidyEvents compares the events that are logged with docs/logs.md.
func TestTidyEvents(t *testing.T) {
	content, err := os.ReadFile("docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range eventRow.FindAllSubmatch(content, -1) {
		documented[string(m[1])] = true
	}
	events := logEvents(parseTree(t, "."))
	for event, at := range events {
		if !documented[event] {
			t.Errorf("%s: the event %q is not in docs/logs.md", at, event)
		}
	}
	for event := range documented {
		if _, ok := events[event]; !ok {
			t.Errorf("docs/logs.md has the event %q, which nobody logs", event)
		}
	}
	if len(events) < 10 {
		t.Errorf("found only %d events", len(events))
	}
}

func complain(t *testing.T, found []string) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}

func TestTidyImports(t *testing.T) { complain(t, checkImports(parseTree(t, "."))) }
func TestTidyDocs(t *testing.T)    { complain(t, checkDocs(parseTree(t, "."))) }
func TestTidySleep(t *testing.T)   { complain(t, checkSleep(parseTree(t, "."))) }
func TestTidyText(t *testing.T)    { complain(t, checkText(t, ".")) }
func TestTidyMapOrder(t *testing.T) {
	complain(t, checkMapOrder(t, parseTree(t, "."), "coordinator/group"))
}

func TestTidyLengths(t *testing.T) {
	found, report := checkLengths(parseTree(t, "."))
	t.Log(report)
	complain(t, found)
}

// TestTidyFindsFaults runs the checks on a tree that has each fault once.
func TestTidyFindsFaults(t *testing.T) {
	tr := parseTree(t, "testdata/tidy")
	for _, check := range []struct {
		name string
		got  []string
		want []string
	}{
		{"imports", checkImports(tr), []string{
			"coordinator/group/bad.go:7: coordinator/group must not import time: the machine is pure: time, entropy and configuration come in with events, news goes out as notes",
			"gateway/api/bad.go:7: gateway/api must not import github.com/rollcall-mq/rollcall/store: handlers see the engine of topics, not where it is kept",
			"stray/stray.go: package stray has no row in the rules of tidy_test.go",
		}},
		{"docs", checkDocs(tr), []string{"stray: no file has a package comment"}},
		{"sleep", checkSleep(tr), []string{
			"coordinator/group/bad.go:15: time.Sleep outside a synctest bubble",
			"gateway/api/bad_test.go:11: time.Sleep outside a synctest bubble",
		}},
		{"map order", checkMapOrder(t, tr, "coordinator/group"), []string{
			"coordinator/group/bad.go:12: range over a map outside a sorted… function",
			"coordinator/group/bad.go:18: iterates over a map outside a sorted… function",
		}},
		{"text", checkText(t, "testdata/tidy/stray"), []string{
			"testdata/tidy/stray/conflict.md:3: a conflict of a merge was left",
			"testdata/tidy/stray/conflict.md:7: a conflict of a merge was left",
			"testdata/tidy/stray/stray.go:3: a " + "TO" + "DO needs the number of an issue",
			"testdata/tidy/stray/stray.go:5: names a directory of one machine",
		}},
	} {
		t.Run(check.name, func(t *testing.T) {
			if !slices.Equal(check.got, check.want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(check.got, "\n"), strings.Join(check.want, "\n"))
			}
		})
	}
}
