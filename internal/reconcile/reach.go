package reconcile

import "github.com/helmsrc/helmsrc/internal/auth"

// Reach is how far the credentials of this machine may go.
type Reach = auth.Reach

// The values of Reach.
const (
	ReachHome     = auth.ReachHome
	ReachAnywhere = auth.ReachAnywhere
	ReachNowhere  = auth.ReachNowhere
)
