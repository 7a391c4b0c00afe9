package report

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const noAssertion = "NOASSERTION"

// writeSPDX writes a document of SPDX 2.3.
func writeSPDX(w io.Writer, run *Run) error {
	m := run.materials()
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "helmsrc " + run.Command,
		DocumentNamespace: home + "/spdx/" + m.id,
		CreationInfo: &spdx.CreationInfo{
			Created:  run.Started.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "helmsrc-" + run.Version}},
		},
	}
	if m.failed > 0 {
		d.DocumentComment = fmt.Sprintf("%d objects are not listed: they failed, are suspended, or were not finished", m.failed)
	}
	relations := map[ComponentKind]string{ComponentChart: common.TypeRelationshipContains, ComponentFiles: common.TypeRelationshipGeneratedFrom}
	for _, one := range m.list {
		d.Packages = append(d.Packages, one.spdx())
		if one.top {
			d.Relationships = append(d.Relationships, relation("DOCUMENT", common.TypeRelationshipDescribe, spdxID(one.ref)))
		}
		for _, part := range one.parts {
			how := cmp.Or(relations[m.found[part].Kind], common.TypeRelationshipDependsOn)
			d.Relationships = append(d.Relationships, relation(spdxID(one.ref), how, spdxID(part)))
		}
	}
	return spdxjson.Write(d, w, spdxjson.Indent("  "), spdxjson.EscapeHTML(false))
}

func (m *material) spdx() *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Name, PackageSPDXIdentifier: spdxID(m.ref), PackageVersion: cmp.Or(m.Version, m.Revision),
		PackageDownloadLocation: m.location(), PackageSourceInfo: m.URL, FilesAnalyzed: false, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: cmp.Or(m.expression(), noAssertion), PackageCopyrightText: noAssertion,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: m.ref}},
	}
	if m.License != "" && m.expression() == "" {
		p.PackageLicenseComments = "the chart states " + m.License
	}
	if algorithm, encoded := m.digest(); encoded != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.ChecksumAlgorithm(strings.ToUpper(algorithm)), Value: encoded}}
	}
	var lines []string
	for _, property := range m.properties() {
		lines = append(lines, property[0]+": "+strings.ReplaceAll(property[1], "\n", " ")) // a value must not begin a line
	}
	p.PackageComment = strings.Join(lines, "\n")
	return p
}

// location returns the download URL of a package, as SPDX writes it. SPDX knows no registries.
func (m *material) location() string {
	_, commit, _ := strings.Cut(m.Revision, "sha1:")
	switch {
	case m.Kind == ComponentFiles && m.uri() != "" && commit != "":
		return "git+" + m.URL + "@" + commit
	case m.Kind != ComponentFiles && strings.HasPrefix(m.uri(), "http"):
		return m.URL
	}
	return noAssertion
}

func spdxID(ref string) common.ElementID {
	sum := sha256.Sum256([]byte(ref))
	return common.ElementID(fmt.Sprintf("Package-%x", sum[:8]))
}

func relation(from common.ElementID, how string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: from}, Relationship: how, RefB: common.DocElementID{ElementRefID: to}}
}
