package reconcile

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A HelmRepository that names no timeout has one all the same.
func TestTimeoutOfRepository(t *testing.T) {
	t.Parallel()
	var unset sourcev1.HelmRepository
	if got := unset.GetTimeout(); got != time.Minute {
		t.Errorf("unset: %v", got)
	}
	set := sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{Timeout: &metav1.Duration{Duration: 90 * time.Second}}}
	if got := set.GetTimeout(); got != 90*time.Second {
		t.Errorf("1m30s: %v", got)
	}
}
