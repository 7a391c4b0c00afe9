package finding

// The codes. Numbers are grouped by subject, with gaps for new codes: HS100 to HS119 are for OCIRepositories, HS120 to HS149
// for HelmReleases, HS150 to HS169 for Kustomizations, HS170 to HS189 for generators of artifacts and objects; codes from
// HS200 on are found only during a fetch, and codes from HS300 on concern integrity.
const (
	Unreadable      Code = "HS001"
	Syntax          Code = "HS002"
	UnknownKind     Code = "HS003"
	DuplicateObject Code = "HS004"
	NotBuilt        Code = "HS005"
	NotReady        Code = "HS006"
	LeftOut         Code = "HS007"
	NoRun           Code = "HS008"
	OutsideLink     Code = "HS009"

	InvalidValue       Code = "HS010"
	UnknownField       Code = "HS011"
	MissingField       Code = "HS012"
	WrongType          Code = "HS013"
	UnsupportedValue   Code = "HS014"
	UnknownVersion     Code = "HS015"
	InvalidMetadata    Code = "HS016"
	InvalidDuration    Code = "HS017"
	UnresolvedVariable Code = "HS018"
	BrokenRule         Code = "HS019"

	DeprecatedVersion  Code = "HS020"
	RemovedField       Code = "HS021"
	DeprecatedSpelling Code = "HS022"
	RemovedVersion     Code = "HS023"

	MissingSource   Code = "HS030"
	MissingSecret   Code = "HS031"
	UnusableSource  Code = "HS032"
	SuspendedSource Code = "HS033"
	InvalidSecret   Code = "HS035"

	OCIWithoutType    Code = "HS040"
	TypeWithoutOCI    Code = "HS041"
	InvalidURL        Code = "HS042"
	UnsupportedScheme Code = "HS043"
	ChartInURL        Code = "HS044"
	LoginInURL        Code = "HS045"
	IndexInURL        Code = "HS046"

	InvalidChartName Code = "HS050"
	MalformedVersion Code = "HS051"
	ImpossibleRange  Code = "HS052"
	UnpinnedVersion  Code = "HS053"

	PassCredentials     Code = "HS060"
	UselessSetting      Code = "HS061"
	UnsupportedProvider Code = "HS062"
	ShortInterval       Code = "HS063"

	UselessVerify      Code = "HS070"
	VerifyAnyone       Code = "HS071"
	InvalidExpression  Code = "HS073"
	NoVerificationKeys Code = "HS074"
	MissingKeys        Code = "HS078"

	IncompleteLogin Code = "HS080"
	BrokenTLS       Code = "HS081"
	NoRegistryLogin Code = "HS082"
	OddSecret       Code = "HS083"
	ProxySecret     Code = "HS087"

	UselessIgnore Code = "HS090"
	UnknownCode   Code = "HS091"

	InvalidReference Code = "HS100"
	OddMediaType     Code = "HS101"
	ServiceAccount   Code = "HS102"

	ChartClash         Code = "HS120"
	MissingValues      Code = "HS121"
	InvalidValues      Code = "HS122"
	ForbiddenReference Code = "HS123"
	ChartTag           Code = "HS124"
	MissingDependency  Code = "HS125"
	DependencyCycle    Code = "HS126"
	RefusedChart       Code = "HS127"
	EndOfLife          Code = "HS130"
	NoChartSource      Code = "HS131"
	OperatorSetting    Code = "HS134"
	SharedRelease      Code = "HS135"
	RefusedName        Code = "HS136"

	SourceElsewhere  Code = "HS150"
	RemoteResource   Code = "HS151"
	MissingVariables Code = "HS152"
	UnsetVariable    Code = "HS153"
	NoNamespace      Code = "HS154"
	UnusableKeys     Code = "HS155"
	ForeignBuild     Code = "HS156"
	NoDecryption     Code = "HS158"
	DroppedLabels    Code = "HS164"

	UnknownKustomizeField Code = "HS165"
	IdlePatch             Code = "HS166"
	RefusedGenerator      Code = "HS170"
	CopyPattern           Code = "HS173"
	RefusedResourceSet    Code = "HS180"
	UnexpandedResourceSet Code = "HS181"

	Authentication    Code = "HS201"
	Unreachable       Code = "HS202"
	Certificate       Code = "HS203"
	ServerError       Code = "HS204"
	NotFound          Code = "HS205"
	RefusedRequest    Code = "HS206"
	TimedOut          Code = "HS207"
	TooLarge          Code = "HS208"
	Offline           Code = "HS209"
	InvalidIndex      Code = "HS210"
	UnknownChart      Code = "HS211"
	NoMatch           Code = "HS212"
	InvalidArchive    Code = "HS213"
	ValuesFiles       Code = "HS214"
	Dependencies      Code = "HS215"
	Packaging         Code = "HS216"
	SourceNotReady    Code = "HS220"
	GitReference      Code = "HS221"
	GitFailed         Code = "HS222"
	BucketFailed      Code = "HS223"
	NotSupported      Code = "HS224"
	UnusableLayer     Code = "HS225"
	NotRendered       Code = "HS226"
	NotLocked         Code = "HS227"
	SchemaReference   Code = "HS228"
	Storage           Code = "HS230"
	OddStorage        Code = "HS231"
	NeverFetched      Code = "HS232"
	NotMerged         Code = "HS234"
	MergedNewest      Code = "HS235"
	Interrupted       Code = "HS240"
	OddSource         Code = "HS250"
	DeprecatedChart   Code = "HS251"
	NotVerified       Code = "HS252"
	AcceptedChart     Code = "HS253"
	BorrowedLogin     Code = "HS254"
	FirstLayer        Code = "HS255"
	StaleDependencies Code = "HS257"
	MissingSubmodule  Code = "HS261"
	WithheldLogin     Code = "HS262"
	Unread            Code = "HS263"
	BrokenMarker      Code = "HS270"
	PolicyFailed      Code = "HS271"
	NotEdited         Code = "HS272"
	NotKept           Code = "HS273"
	ChangesChart      Code = "HS274"
	NotCompared       Code = "HS275"
	Unexpected        Code = "HS299"
	DigestMismatch    Code = "HS301"
	OtherChart        Code = "HS302"
	Unsigned          Code = "HS303"
	SignatureFailed   Code = "HS304"
	Unverifiable      Code = "HS305"
	ArtifactAltered   Code = "HS306"
	GitUnsigned       Code = "HS307"
	Moved             Code = "HS308"
)

// current returns the code, or its replacement. Comments and links contain old codes for a long time.
func current(code Code) Code {
	switch code {
	case "HS054", "HS055", "HS072":
		return UselessSetting
	case "HS064", "HS065":
		return ShortInterval
	case "HS075", "HS076":
		return NoVerificationKeys
	case "HS085", "HS086":
		return IncompleteLogin
	case "HS077", "HS084":
		return OddSecret
	case "HS133", "HS172":
		return ChartClash
	case "HS034", "HS171":
		return DependencyCycle
	case "HS132":
		return RefusedName
	case "HS174", "HS175", "HS176", "HS177", "HS178":
		return CopyPattern
	case "HS233":
		return NeverFetched
	case "HS258", "HS259":
		return OddSource
	case "HS260":
		return AcceptedChart
	case "HS256":
		return FirstLayer
	}
	return code
}
