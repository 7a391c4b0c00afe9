package config

import (
	"fmt"
	"strconv"
)

// Ambient is the value of --ambient-credentials, which was a boolean in earlier versions, and still accepts booleans.
type Ambient string

const (
	AmbientHome     Ambient = "true"  // unless the manifest chose a proxy, an authority or plain HTTP
	AmbientNone     Ambient = "false" // only the identity, for a source that names a provider
	AmbientAnywhere Ambient = "anywhere"

	// ambientType is the name of its type for the configuration file and its schema.
	ambientType = "boolOrAnywhere"
)

func (p *Ambient) String() string { return string(*p) }

func (p *Ambient) Type() string { return ambientType }

func (p *Ambient) Set(text string) error {
	if text == string(AmbientAnywhere) {
		*p = AmbientAnywhere
		return nil
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is not one of true, false, anywhere", text)
	}
	*p = AmbientNone
	if b {
		*p = AmbientHome
	}
	return nil
}
