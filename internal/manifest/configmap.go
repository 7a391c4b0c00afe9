package manifest

// ConfigMap is a ConfigMap as the API server would store it. Its binary data is left out: nothing refers to that.
type ConfigMap struct {
	Namespace, Name string
	Data            map[string]string
	Confidential    bool // a part of it came from a Secret or was encrypted
	Pos             Pos

	object *Object
}

// Excerpt is the place of a key, and nothing of a ConfigMap that came from a Secret.
func (c *ConfigMap) Excerpt(key string) Excerpt {
	if c.Confidential {
		return Excerpt{Pos: c.Pos}
	}
	return c.object.Excerpt("data", key)
}

// ConfigMap finds a ConfigMap that something refers to. One that is encrypted with SOPS counts as missing.
func (s *Set) ConfigMap(namespace, name string) (*ConfigMap, error) {
	o, content, err := s.datum("ConfigMap", namespace, name)
	if err != nil {
		return nil, err
	}
	values := map[string][]byte{}
	r := secretReader{o, content}
	if err := r.merge(values, "data", plainText); err != nil {
		return nil, err
	}
	if err := r.check(values); err != nil {
		return nil, err
	}
	c := &ConfigMap{Namespace: o.Namespace, Name: o.Name, Pos: o.Pos, Data: map[string]string{}, Confidential: s.confidential(o), object: o}
	for k, v := range values {
		c.Data[k] = string(v)
	}
	return c, nil
}

func (s *Set) confidential(o *Object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, opened := s.opened[o]
	return opened || o.Tainted()
}

func plainText(v string) ([]byte, error) { return []byte(v), nil }
