package session

import "strings"

// privateRanges are addresses that are never reached through a proxy, which might reach hosts that this machine must not.
const privateRanges = "localhost,127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,100.64.0.0/10,::1/128,fc00::/7,fe80::/10"

// withoutPrivateProxies returns an environment with the private addresses in NO_PROXY.
func withoutPrivateProxies(getenv func(string) string) func(string) string {
	return func(name string) string {
		value := getenv(name)
		if name == "NO_PROXY" {
			if value == "" {
				value = getenv("no_proxy")
			}
			return strings.Trim(value+","+privateRanges, ",")
		}
		return value
	}
}
