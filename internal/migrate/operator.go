package migrate

// operators migrates the HelmReleases of Flux v1.
func (p *planner) operators() {}
