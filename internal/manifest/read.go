package manifest

// Input holds all files that were read. Read creates it, and then it does not change: the sets of several clusters
// are made from one Input, and it lives as long as they do.
type Input struct {
	bounds bounds

	Files []*File  // in the order of the input
	Dirs  []string // directories with a kustomization file, in the order of the walk
	Roots []string // directories that the user named
	// Passed are the files that the input is about, if the other files were read only because they are part of the same build.
	Passed []string

	namespace string
	dirs      []string // the directories of the files that the user named
	lookup    []string // directories for looking things up
	beside    []*File  // the files beside the files that the user named
	around    []*File  // the files in the lookup directories
	unread    bool     // the lookup directories have more files than may be read
}

// Kustomized reports whether the input has an object or a directory to build or to expand.
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

// Beside lists the files that are not part of the input, but that it may refer to.
func (in *Input) Beside() []*File {
	return append(in.beside[:len(in.beside):len(in.beside)], in.around...)
}

// Build is the result of a build of an input.
type Build struct {
	Claimed map[*File]bool // files that were built: they are not read separately
	Foreign map[*File]bool // files of other clusters alone: they are ignored
	// Unapplied are the claimed files that no kustomization applies.
	Unapplied map[*File]bool
	Objects   []*Object
	Made      []Generator // Secrets and ConfigMaps that controllers create in the cluster only
	Errors    []error
	// Unknown are the namespaces in which a cluster has more objects than were built, "" for all: a missing object may exist.
	Unknown []string

	// Opened has the objects of files as written, for which decryption or the substitution of variables was tried.
	Opened map[*Object]Opened
}

// Opened is an object after decryption and substitution, or the error of that.
type Opened struct {
	Content map[string]any
	Err     error
}

// Set returns the set of an input with the objects of its build, which may be nil. Each error is about a file or an
// object that is not in the set.
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

// other returns a set of files that are only for references.
func (in *Input) other(s *Set, list []*File) *Set {
	other := NewSet(in.namespace)
	other.opened = s.opened
	for _, f := range list {
		s.addReferenceOnly(other, f)
	}
	return other
}

// addReferenceOnly adds a file that is only for references. Its errors are kept for a hint.
func (s *Set) addReferenceOnly(other *Set, f *File) {
	for _, err := range f.errs {
		s.broken = append(s.broken, brokenFile{err, f.data})
	}
	other.commit(&f.batch)
}
