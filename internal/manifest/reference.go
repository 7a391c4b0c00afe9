package manifest

import "strings"

// SplitReference splits a reference to an artifact in a registry. Missing parts are "".
func SplitReference(reference string) (repository, tag, digest string) {
	repository, digest, _ = strings.Cut(reference, "@")
	if i := strings.LastIndexByte(repository, ':'); i > strings.LastIndexByte(repository, '/') {
		repository, tag = repository[:i], repository[i+1:]
	}
	return repository, tag, digest
}
