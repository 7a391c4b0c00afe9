package resourceset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	sprig "github.com/go-task/slim-sprig/v3"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/helmsrc/helmsrc/internal/bound"
)

// The limits of one template. A step is counted before and after each function, in each round of a loop, and in each call of a
// template: the work between steps is small.
const (
	maxSteps   = 200_000
	maxCount   = 10_000 // argument of repeat, indent, until and the like
	maxProduct = 1 << 24
	elementLen = 128  // weight of an element of a list or a map, in bytes
	stepLen    = 4096 // bytes of a value per step
	matchLen   = 640  // instructions of a regular expression per step
	parseLen   = 64   // bytes of a template per step
)

const tick = "stepOfALoop"

// rendered is a parsed template, with the state of its execution.
type rendered struct {
	*template.Template
	run  *run
	size int // of its text
}

type run struct {
	ctx    context.Context
	steps  int
	budget *Budget
	inputs map[string]any
}

func parseTemplate(text string) (*rendered, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("a template of more than %d MiB", maxText>>20)
	}
	r := &run{}
	t, err := template.New("").Delims("<<", ">>").Option("missingkey=error").Funcs(r.functions()).Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			counted(each.Root)
			each.Root.Nodes = append(tickNodes(), each.Root.Nodes...)
		}
	}
	return &rendered{t, r, len(text)}, nil
}

func tickNodes() []parse.Node {
	trees, err := parse.Parse("", "<<"+tick+">>", "<<", ">>", map[string]any{tick: true})
	if err != nil {
		return nil
	}
	return trees[""].Root.Nodes
}

func counted(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		for i := 0; n != nil && i < len(n.Nodes); i++ {
			counted(n.Nodes[i])
		}
	case *parse.IfNode:
		counted(n.List)
		counted(n.ElseList)
	case *parse.WithNode:
		counted(n.List)
		counted(n.ElseList)
	case *parse.RangeNode:
		counted(n.List)
		counted(n.ElseList)
		n.List.Nodes = append(tickNodes(), n.List.Nodes...)
	}
}

func (t *rendered) execute(ctx context.Context, inputs map[string]any, budget *Budget) (string, error) {
	*t.run = run{ctx: ctx, inputs: inputs, budget: budget}
	if err := cmp.Or(budget.spendSteps(1+t.size/parseLen), bounded(reflect.ValueOf(inputs))); err != nil {
		return "", err
	}
	out := &limited{}
	if err := t.Execute(out, nil); err != nil {
		return "", errors.New(strings.TrimPrefix(err.Error(), "template: :"))
	}
	return out.String(), budget.spendText(out.Len())
}

// Unknown is a function, or a field of inputs, that does not exist, with the names that exist.
type Unknown struct {
	Name  string
	Known []string

	line int
}

// unknownIn returns the first function, or the first field of inputs, that does not exist, or nil.
func unknownIn(text string, inputs []map[string]any) *Unknown {
	tree := parse.New("")
	tree.Mode = parse.SkipFuncCheck
	if _, err := tree.Parse(text, "<<", ">>", map[string]*parse.Tree{}); err != nil {
		return nil
	}
	functions := (&run{}).functions()
	names := slices.Concat(slices.Collect(maps.Keys(functions)), []string{"and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "slice", "urlquery"})
	var found *Unknown
	missing := func(at parse.Node, name string, known []string) {
		if found == nil && !slices.Contains(known, name) {
			slices.Sort(known)
			found = &Unknown{name, known, 1 + strings.Count(text[:at.Position()], "\n")}
		}
	}
	guarded := 0 // by a condition, which may check that the field exists
	var walk func(n parse.Node)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe)
		if b.NodeType != parse.NodeRange {
			guarded++
			defer func() { guarded-- }()
		}
		walk(b.List)
		walk(b.ElseList)
	}
	walk = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ListNode:
			for i := 0; n != nil && i < len(n.Nodes); i++ {
				walk(n.Nodes[i])
			}
		case *parse.ActionNode:
			walk(n.Pipe)
		case *parse.PipeNode:
			for i := 0; n != nil && i < len(n.Cmds); i++ {
				for _, arg := range n.Cmds[i].Args {
					walk(arg)
				}
			}
		case *parse.IfNode:
			branch(&n.BranchNode)
		case *parse.RangeNode:
			branch(&n.BranchNode)
		case *parse.WithNode:
			branch(&n.BranchNode)
		case *parse.TemplateNode:
			walk(n.Pipe)
		case *parse.IdentifierNode:
			missing(n, n.Ident, names)
		case *parse.ChainNode:
			if f, ok := n.Node.(*parse.IdentifierNode); ok && f.Ident == "inputs" && len(inputs) > 0 && guarded == 0 {
				var known []string
				for field := range inputs[0] {
					known = append(known, "inputs."+field)
				}
				missing(n, "inputs."+n.Field[0], known)
			}
			walk(n.Node)
		}
	}
	walk(tree.Root)
	return found
}

// pathAt returns the path of the last value that begins at or before a line of a YAML text.
func pathAt(text string, line int) []any {
	var root goyaml.Node
	if goyaml.Unmarshal([]byte(text), &root) != nil {
		return nil
	}
	var best []any
	var walk func(n *goyaml.Node, path []any)
	walk = func(n *goyaml.Node, path []any) {
		if n.Line > line {
			return
		}
		best = path
		for i, child := range n.Content {
			switch {
			case n.Kind == goyaml.MappingNode && i%2 == 1:
				walk(child, append(slices.Clone(path), n.Content[i-1].Value))
			case n.Kind == goyaml.SequenceNode:
				walk(child, append(slices.Clone(path), i))
			case n.Kind == goyaml.DocumentNode:
				walk(child, path)
			}
		}
	}
	walk(&root, nil)
	return best
}

type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxText {
		return 0, fmt.Errorf("a text of more than %d MiB", maxText>>20)
	}
	return l.Builder.Write(p)
}

func (r *run) step(weight int) error {
	n := 1 + weight/stepLen
	if r.steps += n; r.steps > maxSteps {
		return fmt.Errorf("more than %d steps", maxSteps)
	}
	if err := r.budget.spendSteps(n); err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// functions returns the functions of slim-sprig that depend only on their arguments, and the operator's own, within limits.
func (r *run) functions() template.FuncMap {
	list := sprig.HermeticTxtFuncMap()
	for _, clock := range []string{"ago", "unixEpoch", "must_date_modify", "mustDateModify", "randInt", "hello"} {
		delete(list, clock)
	}
	maps.Copy(list, template.FuncMap{
		"printf": fmt.Sprintf, "print": fmt.Sprint, "println": fmt.Sprintln, // so that they are limited, too
		"toYaml": func(v any) string { text, _ := toYAML(v); return text }, "mustToYaml": toYAML, "slugify": slugify,
		"keys": keys, "values": values,
	})
	for name, f := range list {
		list[name] = r.bound(name, f)
	}
	list["inputs"] = func() map[string]any { return r.inputs }
	list[tick] = func() (string, error) { return "", r.step(0) }
	return list
}

func (r *run) bound(name string, f any) any {
	v := reflect.ValueOf(f)
	return reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
		err := r.step(matching(name, args))
		if err == nil {
			err = affordable(name, args)
		}
		if err != nil {
			panic(err) // the template returns it as an error
		}
		var out []reflect.Value
		if v.Type().IsVariadic() {
			out = v.CallSlice(args)
		} else {
			out = v.Call(args)
		}
		w := weight(out[0])
		if w > maxText {
			panic(tooHeavy())
		}
		if err := r.step(w); err != nil {
			panic(err)
		}
		return out
	}).Interface()
}

// matching returns the cost of matching a regular expression, as the length of a value.
func matching(name string, args []reflect.Value) int {
	kind := strings.TrimPrefix(strings.ToLower(name), "must")
	if !strings.HasPrefix(kind, "regex") || kind == "regexquotemeta" {
		return 0
	}
	size := args[1].Len() + 1
	matches := size
	if kind == "regexmatch" || kind == "regexfind" {
		matches = 1
	}
	return bound.Steps(args[0].String(), size, matches) / matchLen * stepLen
}

// affordable refuses arguments for which the result of a function would be far larger than the arguments.
func affordable(name string, args []reflect.Value) error {
	count, longest, second := int64(1), 0, 0
	for _, a := range flattened(args) {
		switch {
		case a.CanInt():
			count = max(count, a.Int())
		case a.Kind() == reflect.String:
			if n := a.Len() + 1; n > longest {
				longest, second = n, longest
			} else {
				second = max(second, n)
			}
		case a.Kind() == reflect.Slice || a.Kind() == reflect.Map:
			second = max(second, weight(a))
		}
	}
	switch name {
	case "repeat", "indent", "nindent", "until", "untilStep", "seq":
		if count > maxCount || count*int64(longest) > maxProduct {
			return fmt.Errorf("the result of %s is too large", name)
		}
	case "replace", "join", "regexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAll", "mustRegexReplaceAllLiteral":
		if longest*max(second, 1) > maxProduct {
			return fmt.Errorf("the result of %s is too large", name)
		}
	}
	return nil
}

// flattened returns the arguments, including the last ones of a variadic function.
func flattened(args []reflect.Value) []reflect.Value {
	var list []reflect.Value
	for _, a := range args {
		for a.IsValid() && a.Kind() == reflect.Interface {
			a = a.Elem()
		}
		if !a.IsValid() {
			continue
		}
		list = append(list, a)
		if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Interface && a.Len() < 16 {
			for i := range a.Len() {
				if e := a.Index(i).Elem(); e.IsValid() {
					list = append(list, e)
				}
			}
		}
	}
	return list
}

func bounded(v reflect.Value) error {
	if weight(v) > maxText {
		return tooHeavy()
	}
	return nil
}

func tooHeavy() error { return fmt.Errorf("a value of more than %d MiB", maxText>>20) }

// weight returns the approximate size of a value in bytes. It stops counting a little above the limit.
func weight(v reflect.Value) int {
	left := maxText + 1
	weigh(v, &left)
	return maxText + 1 - left
}

func weigh(v reflect.Value, left *int) {
	if *left <= 0 || !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		weigh(v.Elem(), left)
	case reflect.String:
		*left -= v.Len() + 1
	case reflect.Slice, reflect.Array:
		*left -= v.Len() * elementLen
		for i := 0; i < v.Len() && *left > 0; i++ {
			weigh(v.Index(i), left)
		}
	case reflect.Map:
		*left -= v.Len() * elementLen
		for it := v.MapRange(); it.Next() && *left > 0; {
			weigh(it.Key(), left)
			weigh(it.Value(), left)
		}
	default:
		*left -= 8
	}
}

func toYAML(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

const maxSlug = 63

// signs replaces the characters that the operator's library replaces in English texts. Letters outside of ASCII, which the
// library transliterates, are left out here.
var signs = strings.NewReplacer("&", "and", "@", "at", "'", "", `"`, "", "’", "")

// slugify makes a name from a text: lower case, words joined by dashes, cut at the end of a word.
func slugify(text string) string {
	slug := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(signs.Replace(strings.TrimSpace(text))))
	slug = strings.Trim(strings.Join(strings.FieldsFunc(slug, func(r rune) bool { return r == '-' }), "-"), "-_")
	if len(slug) <= maxSlug {
		return slug
	}
	if end := strings.LastIndexByte(slug[:maxSlug+1], '-'); end >= 0 {
		return slug[:end]
	}
	return slug[:maxSlug]
}

// keys returns the keys in order, which slim-sprig does not guarantee.
func keys(dicts ...map[string]any) []string {
	var list []string
	for _, d := range dicts {
		list = append(list, slices.Sorted(maps.Keys(d))...)
	}
	return list
}

func values(dict map[string]any) []any {
	var list []any
	for _, k := range slices.Sorted(maps.Keys(dict)) {
		list = append(list, dict[k])
	}
	return list
}
