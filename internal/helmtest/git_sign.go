package helmtest

import (
	"os"
	"path/filepath"
	"strings"
)

// A GitSigner signs the content of a commit or a tag.
type GitSigner interface {
	SignGit(payload []byte) ([]byte, error)
}

// SignCommit replaces the last commit by a signed one. If it is forged, the signature is that of another message.
func (g *Git) SignCommit(by GitSigner, forged bool) error {
	commit, err := g.Run("cat-file", "commit", "HEAD")
	if err != nil {
		return err
	}
	payload := commit + "\n"
	if forged {
		payload = strings.Replace(payload, "\n\n", "\n\nNot ", 1)
	}
	signature, err := by.SignGit([]byte(payload))
	if err != nil {
		return err
	}
	header, message, _ := strings.Cut(commit, "\n\n")
	header += "\ngpgsig " + strings.ReplaceAll(strings.TrimSuffix(string(signature), "\n"), "\n", "\n ")
	hash, err := g.write("commit", header+"\n\n"+message+"\n")
	if err != nil {
		return err
	}
	_, err = g.Run("update-ref", "refs/heads/main", hash)
	return err
}

// SignTag creates an annotated tag of the last commit, without a signature if there is no signer. If name and signed differ,
// the tag has another name than its signature.
func (g *Git) SignTag(name, signed string, by GitSigner) error {
	commit, err := g.Run("rev-parse", "HEAD")
	if err != nil {
		return err
	}
	content := "object " + commit + "\ntype commit\ntag " + signed + "\ntagger helmtest <helmtest@example.com> 1767323045 +0000\n\n" + signed + "\n"
	if by != nil {
		signature, err := by.SignGit([]byte(content))
		if err != nil {
			return err
		}
		content += string(signature)
	}
	hash, err := g.write("tag", content)
	if err != nil {
		return err
	}
	_, err = g.Run("update-ref", "refs/tags/"+name, hash)
	return err
}

// write writes an object and returns its hash.
func (g *Git) write(kind, content string) (string, error) {
	file := filepath.Join(g.Dir, ".git", "object")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", err
	}
	return g.Run("hash-object", "-t", kind, "-w", "--literally", file)
}
