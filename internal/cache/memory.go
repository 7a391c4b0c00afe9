package cache

// A Memory is what the answers of one source, asked with one identity, are kept in.
type Memory struct {
	Cache *Cache // nil keeps nothing
	Scope Scope
	// Missing returns the error of what is not kept, in a run that opens no connection; nil is any other run.
	Missing func(what string) error
}

// Offline reports whether no connection is to be opened.
func (m *Memory) Offline() bool { return m.Missing != nil }

// Recall looks up an answer, and decodes it into value.
func (m *Memory) Recall(kind, name string, value any) bool {
	_, ok := m.Cache.Answer(m.Scope, kind, name, value)
	return ok
}

// Remember keeps an answer.
func (m *Memory) Remember(kind, name string, value any) {
	m.Cache.KeepAnswer(m.Scope, kind, name, "", value)
}
