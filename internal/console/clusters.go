package console

import (
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// divided is what was found in several clusters, until all of them were looked at.
type divided struct {
	names []string // of all clusters
	at    string   // the cluster that lines are about, "" for none
	all   bool     // what is about no cluster is held, too
	known map[string]*shared
	found []*shared // in the order in which it was found first
}

// shared is what clusters may have in common.
type shared struct {
	in    []string
	print func(where string)
}

// Divide has each finding printed once for all clusters in which it is, by Unite.
func (c *Console) Divide(names []string) {
	c.Unite()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.divided = &divided{names: names, known: map[string]*shared{}}
}

// Postpone has all findings printed by Unite, after what the command prints itself. It comes before Divide.
func (c *Console) Postpone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.divided = &divided{names: []string{""}, all: true, known: map[string]*shared{}}
}

// In sets the cluster that lines and findings are about from now on. It does nothing before Divide.
func (c *Console) In(cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.divided != nil {
		c.divided.at = cluster
	}
}

// Unite prints what was found, with the clusters where these are not all, then the failures, and ends what Divide began.
func (c *Console) Unite() {
	c.mu.Lock()
	d, failures := c.divided, c.failures
	c.divided, c.failures = nil, nil
	c.mu.Unlock()
	if d == nil {
		d = &divided{names: []string{""}}
	}
	for _, s := range d.found {
		where := ""
		if len(s.in) < len(d.names) {
			where = inClusters(s.in)
		}
		s.print(where)
	}
	c.reportFailures(failures, len(d.names))
}

// inClusters says in which clusters something is.
func inClusters(names []string) string { return " (in " + Few(names) + ")" }

// hold keeps what is printed about a cluster until Unite prints it. It is false where there are no clusters.
func (c *Console) hold(print func(where string), key ...any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.divided == nil || c.divided.at == "" && !c.divided.all {
		return false
	}
	d, id := c.divided, fmt.Sprint(key...)
	s := d.known[id]
	if s == nil {
		s = &shared{print: print}
		d.known[id], d.found = s, append(d.found, s)
	}
	if !slices.Contains(s.in, d.at) {
		s.in = append(s.in, d.at)
	}
	return true
}

// holdFinding keeps a finding.
func (c *Console) holdFinding(f finding.Finding, t Presentation) bool {
	return c.hold(func(where string) {
		f.Message += where
		if t.Text != "" {
			t.Text += where
		}
		c.ReportAs(f, t)
	}, "finding", f.Severity, f.Pos, f.Code, f.Kind, f.Namespace, f.Name, f.Message, f.Fix, t.Text, t.At, t.others)
}

// cluster is the one that lines are about. The lock is held.
func (c *Console) cluster() string {
	if c.divided == nil {
		return ""
	}
	return c.divided.at
}
