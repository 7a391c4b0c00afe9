package console

import (
	"fmt"
	"slices"

	"github.com/helmsrc/helmsrc/internal/finding"
)

// divided holds the findings of several clusters until the run has read all clusters.
type divided struct {
	names []string // of all clusters
	at    string   // the cluster that lines are about, "" outside of a cluster
	all   bool     // lines that are about no cluster are held, too
	known map[string]*shared
	found []*shared // in the order of their first occurrence
}

// shared is a line or a finding that clusters may have in common.
type shared struct {
	in    []string
	print func(in []string) // the clusters, nil if all have it
}

// Divide holds findings and lines about clusters until Unite prints each once, with the clusters that have it.
func (c *Console) Divide(names []string) {
	c.Unite()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.divided = &divided{names: names, known: map[string]*shared{}}
}

// Postpone holds all findings until Unite, so that they follow the output of the command. It is called before Divide.
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

// Unite prints the held lines, each with its clusters unless all clusters have it, then the failures, and ends Divide.
func (c *Console) Unite() {
	c.mu.Lock()
	d, failures := c.divided, c.failures
	c.divided, c.failures = nil, nil
	c.mu.Unlock()
	if d == nil {
		d = &divided{names: []string{""}}
	}
	for _, s := range d.found {
		if len(s.in) >= len(d.names) {
			s.in = nil
		}
		s.print(s.in)
	}
	c.reportFailures(failures, len(d.names))
}

// inClusters returns the names of clusters as the end of a message, "" for nil.
func inClusters(names []string) string {
	if names == nil {
		return ""
	}
	return " (in " + Few(names) + ")"
}

// hold keeps a line about a cluster until Unite prints it. It returns false if the line is to be printed now.
func (c *Console) hold(print func(in []string), key ...any) bool {
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

// Note prints a line of the default verbosity that clusters may have in common.
func (c *Console) Note(s Subject, text string) {
	print := func(in []string) { c.Info(s, text+inClusters(in)) }
	if !c.hold(print, "note", s, text) {
		print(nil)
	}
}

// holdFinding keeps a finding.
func (c *Console) holdFinding(f finding.Finding, t Presentation) bool {
	return c.hold(func(in []string) {
		where := inClusters(in)
		f.Message, f.Clusters = f.Message+where, in
		if t.Text != "" {
			t.Text += where
		}
		c.ReportAs(f, t)
	}, "finding", f.Severity, f.Pos, f.Code, f.Kind, f.Namespace, f.Name, f.Message, f.Fix, t.Text, t.At, t.others)
}

// cluster returns the cluster that lines are about. The lock is held.
func (c *Console) cluster() string {
	if c.divided == nil {
		return ""
	}
	return c.divided.at
}
