package bucket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/helmsrc/helmsrc/internal/fetch/fetchtest"
	"github.com/helmsrc/helmsrc/internal/finding"
)

// A region that would name another host is refused before the token of the job goes anywhere.
func TestBucketRegion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("canary-web-identity"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ci")
	w := fetchtest.NewWorld(t)
	w.Config.Retries = 0
	var mu sync.Mutex
	var asked []string
	w.Config.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		asked = append(asked, addr)
		mu.Unlock()
		return w.Dial(ctx, network, addr)
	}
	o := Options{Provider: "aws", Endpoint: "s3.amazonaws.com", Bucket: "charts", Ambient: true, TempDir: t.TempDir()}

	o.Region = "eu-west-1"
	if _, err := Download(t.Context(), w.Client(t), o); err == nil || !slices.Contains(asked, "sts.eu-west-1.amazonaws.com:443") {
		t.Errorf("error %v, asked %q: the identity of the job is not looked for", err, asked)
	}
	asked = nil
	for _, region := range []string{"charts.attacker.example/x?", "charts.attacker.example", "a@charts.attacker.example", "a#"} {
		o.Region = region
		_, err := Download(t.Context(), w.Client(t), o)
		for _, err := range []error{err, Check(o)} {
			var part *finding.Problem
			if !errors.As(err, &part) || !strings.HasPrefix(err.Error(), "spec.region is not a region") {
				t.Errorf("%s: error %v", region, err)
			}
		}
	}
	o.Region, o.Bucket = "", "charts/../other?x="
	if _, err := Download(t.Context(), w.Client(t), o); err == nil || !strings.HasPrefix(err.Error(), "spec.bucketName is not ") {
		t.Errorf("error %v", err)
	}
	if len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
}
