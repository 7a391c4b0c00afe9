package cache

// A Memory holds the answers of one source to one identity.
type Memory struct {
	Cache *Cache // nil stores nothing
	Scope Scope
	// Missing returns the error for an answer that is not cached, in an offline run; it is nil in other runs.
	Missing func(what string) error
}

// Offline reports whether the run opens no connections.
func (m *Memory) Offline() bool { return m.Missing != nil }

// Recall looks up an answer, and decodes it into value.
func (m *Memory) Recall(kind, name string, value any) bool {
	_, ok := m.Cache.Answer(m.Scope, kind, name, value)
	return ok
}

// Remember stores an answer.
func (m *Memory) Remember(kind, name string, value any) {
	m.Cache.KeepAnswer(m.Scope, kind, name, "", value)
}
