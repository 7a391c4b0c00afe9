package fetch

// Redacted stands where a secret was.
const Redacted = "REDACTED"
