package manifest

// Input is everything that was read. Read makes it, and then it does not change: the sets of several clusters are made of
// one, and it lives as long as they do.
type Input struct {
	bounds bounds

	Files []*File  // in the order of the input
	Dirs  []string // directories with a kustomization file, in the order of the walk
	Roots []string // directories that were named
	// Passed are the files that the input is about, if the rest was only read because they are part of it.
	Passed []string

	namespace string
	dirs      []string // of the files that were named
	lookup    []string // directories for looking things up
	beside    []*File  // that lie beside those that were named
	around    []*File  // in the lookup directories
	unread    bool     // there are more of those than may be read
}

// Kustomized reports whether there is anything to build, or to expand.
func (in *Input) Kustomized() bool {
	if len(in.Dirs) > 0 {
		return true
	}
	for _, f := range in.Files {
		if len(f.Kustomizations())+len(f.Operators())+len(f.Instances()) > 0 {
			return true
		}
	}
	return false
}

// Beside lists the files that are no part of the input, but that it may refer to.
func (in *Input) Beside() []*File {
	return append(in.beside[:len(in.beside):len(in.beside)], in.around...)
}

// Build is what became of an input.
type Build struct {
	Claimed map[*File]bool // files that are part of what was built: they are not read by themselves
	Foreign map[*File]bool // files that are part of other clusters alone: they are not there
	// Unapplied are those of the claimed files that nothing applies.
	Unapplied map[*File]bool
	Objects   []*Object
	Made      []Generator // what is made of objects in the cluster only
	Errors    []error
	// Unknown are the namespaces in which a cluster has more than was built, "" for all: what is missing there may exist.
	Unknown []string

	// Opened has the objects of files that were decrypted, or whose variables were substituted, as they lie there.
	Opened map[*Object]Opened
}

// Opened is an object that was made ready, or why that is not possible.
type Opened struct {
	Content map[string]any
	Err     error
}

// Set is what was read, with what was built of it; nil for nothing. Each error stands for a file or an object that is not
// in the set.
func (in *Input) Set(built *Build) (*Set, []error) {
	s := NewSet(in.namespace)
	s.dirs, s.unread = in.dirs, in.unread
	if in.Passed == nil {
		s.roots = in.Roots
	}
	if built == nil {
		built = &Build{}
	}
	s.opened, s.unknown = built.Opened, built.Unknown
	s.siblings, s.surroundings = in.other(s, in.beside), in.other(s, in.around)
	var errs []error
	for _, f := range in.Files {
		if built.Foreign[f] {
			continue
		}
		s.components(f.Name, f.data)
		if built.Unapplied[f] {
			s.unapplied = append(s.unapplied, f.Objects()...)
		}
		if built.Claimed[f] {
			continue
		}
		if f.referenceOnly {
			s.addReferenceOnly(s.surroundings, f)
			continue
		}
		errs = append(errs, f.errs...)
		for _, err := range f.errs {
			s.unreadable = append(s.unreadable, brokenFile{err, f.data})
		}
		s.skips = append(s.skips, f.skips...)
		s.commit(&f.batch)
		errs = append(errs, s.takeFaults()...)
	}
	for _, m := range built.Made {
		s.generated[m.Generates] = m.Object
	}
	s.AddBuilt(built.Objects...)
	errs = append(errs, built.Errors...)
	errs = append(errs, s.takeFaults()...)
	return s, append(errs, s.duplicates()...)
}

// other is a set of files that are there for references alone.
func (in *Input) other(s *Set, list []*File) *Set {
	other := NewSet(in.namespace)
	other.opened = s.opened
	for _, f := range list {
		s.addReferenceOnly(other, f)
	}
	return other
}

// addReferenceOnly keeps a file for references. What of it cannot be read is kept for a hint.
func (s *Set) addReferenceOnly(other *Set, f *File) {
	for _, err := range f.errs {
		s.broken = append(s.broken, brokenFile{err, f.data})
	}
	other.commit(&f.batch)
}
