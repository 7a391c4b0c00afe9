package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

// maxCycle is the number of charts that are read to find a cycle of local dependencies.
const maxCycle = 100

// Missing returns the dependencies that a chart requires and does not contain, in their order: those of its lock file if
// it has one, else those of its metadata. Conditions and tags make no difference. A contained chart satisfies the
// requirements with its name. The warnings are about a lock file that is out of date, and about contained charts of
// another version than the required one.
func Missing(c *helmchart.Chart) (missing []*helmchart.Dependency, warnings []string) {
	required := c.Metadata.Dependencies
	if c.Lock != nil {
		required = c.Lock.Dependencies
		if !lockIsCurrent(c) {
			warnings = append(warnings, "the lock file is out of sync with the dependencies of the chart")
		}
	}
	for _, d := range required {
		if d == nil {
			continue
		}
		found, warning := contained(c, d, required)
		if warning != "" {
			warnings = append(warnings, warning)
		}
		if !found && !slices.ContainsFunc(missing, func(m *helmchart.Dependency) bool { return sameRequirement(m, d) }) {
			missing = append(missing, d)
		}
	}
	return missing, warnings
}

// Unlocked is Missing by the rules of the Helm Operator of Flux 1: it returns all dependencies in the metadata, regardless of the
// lock file. With vendored, it leaves out the dependencies that the chart contains.
func Unlocked(c *helmchart.Chart, vendored bool) (missing []*helmchart.Dependency) {
	for _, d := range c.Metadata.Dependencies {
		if d == nil || slices.ContainsFunc(missing, func(m *helmchart.Dependency) bool { return sameRequirement(m, d) }) {
			continue
		}
		if found, _ := contained(c, d, c.Metadata.Dependencies); !found || !vendored {
			missing = append(missing, d)
		}
	}
	return missing
}

// Locked returns the version of a dependency in the lock file of a chart, "" if it is not there.
func Locked(c *helmchart.Chart, d *helmchart.Dependency) string {
	if c.Lock == nil {
		return ""
	}
	for _, l := range c.Lock.Dependencies {
		if l != nil && l.Name == d.Name && l.Repository == d.Repository {
			return l.Version
		}
	}
	return ""
}

// contained looks for a subchart that satisfies a requirement: one with the name that it shall have in the chart, else
// one with its own name and a fitting version, as Helm does when it renders. A subchart of another version counts with
// a warning, unless it is there for another requirement.
func contained(c *helmchart.Chart, d *helmchart.Dependency, required []*helmchart.Dependency) (found bool, warning string) {
	for _, sub := range c.Dependencies() {
		if d.Alias != "" && sub.Name() == d.Alias || satisfies(sub, d) {
			return true, ""
		}
	}
	for _, sub := range c.Dependencies() {
		wanted := func(r *helmchart.Dependency) bool { return r != nil && satisfies(sub, r) }
		if d.Alias == "" && sub.Name() == d.Name && !slices.ContainsFunc(required, wanted) {
			return true, fmt.Sprintf("the chart contains '%s' in version %s, but requires '%s'",
				printable(sub.Name()), printable(sub.Metadata.Version), printable(d.Version))
		}
	}
	return false, ""
}

func satisfies(c *helmchart.Chart, d *helmchart.Dependency) bool {
	if c.Name() != d.Name || d.Version == "" {
		return c.Name() == d.Name
	}
	constraint, err := semver.NewConstraint(d.Version)
	if err != nil {
		return false
	}
	version, err := semver.NewVersion(c.Metadata.Version)
	return err == nil && constraint.Check(version)
}

// sameRequirement reports whether one subchart satisfies both requirements. Lock files do not record aliases, so a chart
// that is required under two aliases is locked twice.
func sameRequirement(a, b *helmchart.Dependency) bool {
	return inChart(a) == inChart(b) && a.Version == b.Version && a.Repository == b.Repository
}

func inChart(d *helmchart.Dependency) string {
	if d.Alias != "" {
		return d.Alias
	}
	return d.Name
}

// lockIsCurrent compares the digest in a lock file as Helm does, for charts of API version 1 also by the rules of Helm 2.
func lockIsCurrent(c *helmchart.Chart) bool {
	req := c.Metadata.Dependencies
	if c.Lock.Digest == jsonDigest([2][]*helmchart.Dependency{req, c.Lock.Dependencies}) {
		return true
	}
	return c.Metadata.APIVersion == helmchart.APIVersionV1 &&
		c.Lock.Digest == jsonDigest(map[string][]*helmchart.Dependency{"dependencies": req})
}

func jsonDigest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsLocal reports whether a dependency comes from the source of the chart.
func IsLocal(d *helmchart.Dependency) bool {
	return d.Repository == "" || strings.HasPrefix(d.Repository, "file://")
}

// CheckRepository returns an error if a remote dependency's repository is an alias, which only the Helm client of some
// user knows, or a URL that is not http, https or oci.
func CheckRepository(repository string) error {
	switch {
	case strings.HasPrefix(repository, "oci"), strings.HasPrefix(repository, "https://"), strings.HasPrefix(repository, "http://"):
		return nil
	case strings.HasPrefix(repository, "@"):
		return fmt.Errorf("aliased repository dependency is not supported: %s/", printable(strings.TrimRight(repository, "/")))
	}
	return fmt.Errorf("invalid dependency repository URL: %s/", redact(strings.TrimRight(repository, "/")))
}

// redact removes possible secrets from a text that need not be a URL.
func redact(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		scheme, _, _ := strings.Cut(s, ":")
		return printable(scheme) + ":REDACTED"
	}
	if u.User == nil && u.RawQuery == "" && !strings.Contains(u.Opaque, "@") {
		return printable(s)
	}
	out := u.Scheme + "://" + u.Host + u.Path
	if u.Host == "" {
		out = u.Scheme + ":REDACTED"
	}
	if u.RawQuery != "" {
		out += "?REDACTED"
	}
	return printable(out)
}

// Local loads a dependency inside the source: at charts/<name> of the chart, or at its file:// URL, relative to the
// chart's directory. Its own dependencies are not resolved.
func (s Source) Local(chartPath string, d *helmchart.Dependency) (*helmchart.Chart, error) {
	c, err := s.local(clamp(chartPath), d)
	if err != nil {
		return nil, fmt.Errorf("failed to add local dependency '%s': %w", printable(d.Name), err)
	}
	return c, nil
}

func (s Source) local(chartDir string, d *helmchart.Dependency) (*helmchart.Chart, error) {
	name, err := localPath(chartDir, d)
	if err != nil {
		return nil, err
	}
	if _, _, err := s.resolve(name); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no chart found at '%s' (reference '%s')", printable(rooted(name)), redact(d.Repository))
	} else if err != nil {
		return nil, err
	}
	constraint, err := semver.NewConstraint(d.Version)
	if err != nil {
		return nil, fmt.Errorf("invalid version/constraint format '%s': %w", printable(d.Version), err)
	}
	if err := s.checkCycle(chartDir, name); err != nil {
		return nil, err
	}
	c, err := s.Load(name)
	if err != nil {
		return nil, fmt.Errorf("failed to load chart from '%s' (reference '%s'): %w", printable(rooted(name)), redact(d.Repository), err)
	}
	version, err := semver.NewVersion(c.Metadata.Version)
	if err != nil {
		return nil, err
	}
	if !constraint.Check(version) {
		return nil, fmt.Errorf("can't get a valid version for constraint '%s'", printable(d.Version))
	}
	return c, nil
}

// localPath returns the path of a dependency of the chart in a directory. The first element of a relative file:// path
// is the URL's host.
func localPath(chartDir string, d *helmchart.Dependency) (string, error) {
	if d.Repository == "" {
		return clamp(path.Join("/"+chartDir, "charts", d.Name)), nil
	}
	u, err := url.Parse(d.Repository)
	if err != nil {
		return "", fmt.Errorf("failed to parse alleged local chart reference: %w", withoutURL(err))
	}
	if u.Scheme != "" && u.Scheme != "file" {
		return "", fmt.Errorf("'%s' is not a local chart reference", redact(d.Repository))
	}
	return clamp(path.Join("/"+chartDir, u.Host, u.Path)), nil
}

func withoutURL(err error) error {
	if parse, ok := errors.AsType[*url.Error](err); ok {
		return parse.Err
	}
	return err
}

// checkCycle follows the local dependencies of a dependency. They would not be resolved, but a chart that contains
// itself is a mistake.
func (s Source) checkCycle(chartDir, dependency string) error {
	from := map[string]string{dependency: chartDir}
	for todo := []string{dependency}; len(todo) > 0 && len(from) < maxCycle; todo = todo[1:] {
		at := todo[0]
		if at == chartDir {
			return fmt.Errorf("dependency cycle: %s", cycle(from, chartDir))
		}
		for _, next := range s.localDependencies(at) {
			if _, seen := from[next]; !seen {
				from[next] = at
				todo = append(todo, next)
			}
		}
	}
	return nil
}

// localDependencies returns the paths of a directory's local dependencies. Without a readable Chart.yaml it returns
// nil; loading the chart reports the fault.
func (s Source) localDependencies(dir string) []string {
	m, err := s.metadata(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, d := range m.Dependencies {
		if !strings.HasPrefix(d.Repository, "file://") {
			continue
		}
		if path, err := localPath(dir, d); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func cycle(from map[string]string, chartDir string) string {
	way := []string{"'" + printable(rooted(chartDir)) + "'"}
	for at := from[chartDir]; ; at = from[at] {
		way = append(way, "'"+printable(rooted(at))+"'")
		if at == chartDir {
			break
		}
	}
	slices.Reverse(way)
	return strings.Join(way, " -> ")
}

// Vendor adds the charts that satisfy dependencies, each at the position of its dependency, under the name that it
// shall have there. The charts themselves are not changed, so one may satisfy several dependencies.
func Vendor(c *helmchart.Chart, dependencies []*helmchart.Dependency, charts []*helmchart.Chart) {
	for i, d := range dependencies {
		sub := clone(charts[i])
		sub.Metadata.Name = inChart(d)
		c.AddDependency(sub)
	}
	sortDependencies(c)
}

// clone copies the parts of a chart that change when it becomes a subchart.
func clone(c *helmchart.Chart) *helmchart.Chart {
	out, m := *c, *c.Metadata
	out.Metadata = &m
	var subs []*helmchart.Chart
	for _, sub := range c.Dependencies() {
		subs = append(subs, clone(sub))
	}
	out.SetDependencies(subs...)
	return &out
}

// Unvendor removes the subcharts of a chart that have the name or alias of a dependency.
func Unvendor(c *helmchart.Chart, dependencies []*helmchart.Dependency) {
	c.SetDependencies(slices.DeleteFunc(slices.Clone(c.Dependencies()), func(sub *helmchart.Chart) bool {
		return slices.ContainsFunc(dependencies, func(d *helmchart.Dependency) bool { return sub.Name() == d.Name || sub.Name() == d.Alias })
	})...)
}
