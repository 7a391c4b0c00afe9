package reconcile

import (
	"fmt"

	"github.com/helmsrc/helmsrc/internal/auth"
)

// cloudLogins are the logins of a cloud's registries.
func (r *Reconciler) cloudLogins(provider string) (auth.Logins, error) {
	return nil, fmt.Errorf("provider %s is not supported yet", provider)
}
