package reconcile

import "testing"

func TestVersionOfRevision(t *testing.T) {
	const d = "sha256:9933f58f8bf459eb199d59ebc8a05683f3944e1242d9f5467d99aa2cf08a5370"
	tests := []struct{ name, version, revision, want, digest, wantErr string }{
		{"case R16", "1.2.3", "1.2.3@" + d, "1.2.3+9933f58f8bf4", d, ""},
		{"case R17", "1.2.3", "1.2.4@" + d, "", "", "artifact revision 1.2.4 does not match chart version 1.2.3"},
		{"case R18", "1.2.3", d, "1.2.3+9933f58f8bf4", d, ""},
		{"case R19: metadata is replaced", "0.1.0+20241101123015", "0.1.0_20241101123015@" + d, "0.1.0+9933f58f8bf4", d, ""},
		{"case R19: v in the tag", "0.1.0", "v0.1.0@" + d, "0.1.0+9933f58f8bf4", d, ""},
		{"case R19: v in the chart", "v0.1.0", "0.1.0@" + d, "0.1.0+9933f58f8bf4", d, ""},
		{"case R20: no version", "1.2.3", "latest@" + d, "1.2.3+9933f58f8bf4", d, ""},
		{"case R20: floating", "1.2.3", "1@" + d, "", "", "artifact revision 1 does not match chart version 1.2.3"},
		{"a date", "1.2.3", "20240101@" + d, "", "", "artifact revision 20240101 does not match chart version 1.2.3"},
		{"floating, but equal", "1.2.0", "1.2@" + d, "1.2.0+9933f58f8bf4", d, ""},
		{"a commit", "1.2.3", "abc1f@" + d, "1.2.3+9933f58f8bf4", d, ""},
		{"a short chart version", "1.2", "latest@" + d, "1.2.0+9933f58f8bf4", d, ""},
		{"two at signs", "1.2.3", "1.2.3@x@" + d, "", "", "artifact revision 1.2.3 does not match chart version 1.2.3"},
		{"no chart version", "x", d, "", "", "invalid chart version x"},
		{"no digest", "1.2.3", "main/abc", "", "", "invalid artifact revision main/abc"},
		{"a short digest", "1.2.3", "latest@sha256:9933", "", "", "invalid artifact revision latest@sha256:9933"},
		{"no digest after a tag", "1.2.3", "latest@", "", "", "invalid artifact revision latest@"},
		{"two colons", "1.2.3", "sha256:a:" + d, "", "", "invalid artifact revision sha256:a:" + d},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, digest, err := versionOfRevision(tt.version, tt.revision)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != tt.want || digest != tt.digest || text != tt.wantErr {
				t.Errorf("%s, %s, %s; want %s, %s, %s", got, digest, text, tt.want, tt.digest, tt.wantErr)
			}
		})
	}
}
