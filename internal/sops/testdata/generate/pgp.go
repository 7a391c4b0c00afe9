package main

import (
	"encoding/hex"

	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/pgp"
)

func pgpKey(k *keyring) keys.MasterKey {
	return pgp.NewMasterKeyFromFingerprint(hex.EncodeToString(k.pgp.PrimaryKey.Fingerprint))
}
