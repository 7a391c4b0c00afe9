package finding

// Sentences that name a field of an object's spec: the packages that fetch, log in and verify do not know the fields.
// TestFields checks that the fields exist.

// Logins and authorities.
const (
	LoginInSecret            = "write them into a Secret and name it in spec.secretRef"
	LoginOfRegistry          = "write them into a Secret of type kubernetes.io/dockerconfigjson and name it in spec.secretRef"
	RegistryLogin            = "log in with 'helm registry login %s', or name a Secret of type kubernetes.io/dockerconfigjson in spec.secretRef"
	HelmLogin                = "the server may require credentials: name a Secret with username and password in spec.secretRef"
	HelmLoginRefused         = "the server does not accept the username and password of spec.secretRef, or of the URL"
	HelmLoginForbidden       = "the user of spec.secretRef may lack the permission to read this repository"
	HelmLoginRate            = "the server limits requests without a login: a login in spec.secretRef may raise the limit"
	GitLogin                 = "the repository may require credentials: name a Secret with username and password, or with bearerToken, in spec.secretRef"
	GitLoginRefused          = "the server does not accept the credentials of spec.secretRef"
	GitLoginForbidden        = "the credentials of spec.secretRef may lack the permission to read this repository"
	GitHidden                = "servers give the same answer for private repositories, which need a Secret in spec.secretRef"
	SSHLogin                 = "a repository with an ssh:// URL needs a Secret with identity and known_hosts in spec.secretRef"
	SSHForbidden             = "the public half of the identity in spec.secretRef may lack the permission to read this repository"
	KnownHostsUnread         = "'known_hosts' in the Secret of spec.secretRef cannot be read"
	KnownHosts               = "verify the output of ssh-keyscan for the host, and add it to known_hosts in the Secret of spec.secretRef"
	S3Login                  = "the bucket may require credentials: name a Secret with accesskey and secretkey in spec.secretRef"
	GoogleLogin              = "the bucket may require credentials: name a Secret with serviceaccount in spec.secretRef"
	AzureLogin               = "the container may require credentials: name a Secret, for example with accountKey or sasKey, in spec.secretRef"
	ProxyLogin               = "the proxy requires credentials: write them into the Secret of spec.proxySecretRef, or into HTTPS_PROXY or HTTP_PROXY as http://user:password@host:port"
	ProxyLoginRefused        = "the proxy does not accept the username and password in the Secret of spec.proxySecretRef"
	RegistryCA               = "if the registry's certificate is from a private CA, name a Secret with that CA in ca.crt in spec.certSecretRef"
	ServerCA                 = "if the server's certificate is from a private CA, name a Secret with that CA in ca.crt in spec.certSecretRef"
	BucketCA                 = "if the server's certificate is from a private CA, name a Secret with ca.crt in spec.certSecretRef"
	GitCA                    = "if the server's certificate is from a private CA, put that CA into ca.crt of the Secret of spec.secretRef"
	OtherCA                  = "the CA in the Secret of spec.certSecretRef did not issue the server's certificate"
	ClientCertificate        = "the server may require a client certificate: name a Secret with tls.crt and tls.key in spec.certSecretRef"
	ClientCertificateRefused = "the server may not accept the client certificate of spec.certSecretRef"
	PassLogin                = "the archive is on %s, but the credentials are for %s: spec.passCredentials: true sends them there too"
	OtherProvider            = "'%s' is a registry of %s: spec.provider should be %s"
	OtherSTS                 = "spec.sts.endpoint: '%s' is not STS of AWS over https: the identity of this machine is not sent to it"
	ManifestProxy            = "spec.proxySecretRef leads through a proxy that the manifest chose"
	ManifestCA               = "spec.certSecretRef names an authority that the manifest chose"
	ManifestInsecure         = "spec.insecure disables verified TLS"
)

// Settings of TLS, in the words of Flux.
const (
	TLSType       = "secret '%s' in certSecretRef should be of type %s or %s"
	TLSUnusable   = "TLS settings in secretRef are ignored: %v"
	TLSIgnored    = "TLS settings in secret '%s' in secretRef are ignored: certSecretRef has its own"
	TLSDeprecated = "TLS settings in secret '%s' in secretRef are deprecated: use certSecretRef"
)

// Addresses, versions and limits.
const (
	Timeout              = "spec.timeout"
	RegionField          = "spec.region"
	BucketField          = "spec.bucketName"
	PlainHTTP            = "spec.insecure: true selects plain HTTP: remove it if the registry serves HTTPS"
	RegistryPlain        = "the registry serves plain HTTP: spec.insecure: true allows that"
	ServerPlain          = "the server serves plain HTTP on this port: spec.url must begin with http://"
	URLHasChart          = "spec.url ends in the chart's name, which is appended to it: use %s%s"
	URLOfCharts          = "charts and images often have the same name: is spec.url the URL of the charts?"
	URLOfIndex           = "spec.url must be the directory that contains index.yaml, not a web page; the page may be a login page"
	URLOfIndexOrRegistry = "spec.url must be the directory that contains index.yaml; a registry has an oci:// URL and type: oci"
	URLOfClone           = "spec.url must be the URL for git clone, which often differs from the URL in the browser"
	URLMoved             = "redirected to %s, which does not get the credentials for %s: if the repository has moved, change spec.url"
	URLOfAzure           = "with the provider azure spec.endpoint looks like https://ACCOUNT.blob.core.windows.net"
	TypeIsOCI            = "spec.type is oci, so the URL must "
	VersionOfChart       = "the URL is that of a repository: the version goes into the chart's spec.version"
	DigestInRef          = "the digest goes into spec.ref.digest"
	TagInRef             = "the tag goes into spec.ref.tag"
	RefIn                = "the commit of spec.ref in "
	DefaultBranch        = "the default branch of the repository is %s: set spec.ref.branch to the branch to use"
	TagOfName            = "there is a tag of this name: use spec.ref.tag: %s"
	LeaveOut             = "spec.ignore and a .sourceignore file in the bucket leave objects out"
)

// Signatures.
const (
	WithoutCertificate = "the signature comes without a certificate: it was made with a key; name a Secret in spec.verify.secretRef that contains the public key under a name that ends in .pub"
	WithCertificate    = "the signature comes with a certificate: it was made keyless, which is verified without spec.verify.secretRef, with spec.verify.matchOIDCIdentity"
)
