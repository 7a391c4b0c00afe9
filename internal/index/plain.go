package index

import "go.yaml.in/yaml/v3"

// plainKind returns the type of a plain (unquoted) YAML scalar. Helm reads YAML 1.1, where yes, no, on and off are
// booleans and a timestamp is a string where a string is expected; the YAML parser decides about numbers.
func plainKind(text []byte) kind {
	if len(text) == 0 {
		return kindNull
	}
	switch c := text[0]; {
	case c == '~', c == 'n', c == 'N', c == 't', c == 'T', c == 'f', c == 'F', c == 'y', c == 'Y', c == 'o', c == 'O':
		return wordKind(string(text))
	case c >= '0' && c <= '9', c == '+', c == '-', c == '.':
		return numberKind(string(text))
	}
	return kindString
}

func wordKind(text string) kind {
	switch text {
	case "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON",
		"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF":
		return kindBool
	}
	return kindString
}

func numberKind(text string) kind {
	scalar := yaml.Node{Kind: yaml.ScalarNode, Value: text}
	return tagKind(scalar.ShortTag())
}

// tagKind returns the type of a scalar with a YAML tag. An unknown tag makes a string, as it does for the YAML parser.
func tagKind(tag string) kind {
	switch tag {
	case "!!null":
		return kindNull
	case "!!bool":
		return kindBool
	case "!!int", "!!float":
		return kindNumber
	}
	return kindString
}
