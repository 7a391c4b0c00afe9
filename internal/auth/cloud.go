package auth

import "strings"

// CloudPermission names what a login needs to pull from a cloud's registry, or nothing if the host is not one.
func CloudPermission(host string) string {
	switch cloudOf(host) {
	case "aws":
		return "ecr:BatchGetImage and ecr:GetDownloadUrlForLayer, as in AmazonEC2ContainerRegistryReadOnly"
	case "azure":
		return "the role AcrPull"
	case "gcp":
		return "artifactregistry.repositories.downloadArtifacts, as in the role Artifact Registry Reader"
	}
	return ""
}

func cloudOf(host string) string {
	host = strings.ToLower(host)
	switch {
	case strings.HasSuffix(host, ".gcr.io"), host == "gcr.io", strings.HasSuffix(host, "-docker.pkg.dev"):
		return "gcp"
	case strings.HasSuffix(host, ".azurecr.io"), strings.HasSuffix(host, ".azurecr.cn"), strings.HasSuffix(host, ".azurecr.us"):
		return "azure"
	case strings.Contains(host, ".dkr.ecr"), strings.Contains(host, ".dkr-ecr."), host == "public.ecr.aws":
		return "aws"
	}
	return ""
}
