package sops

import "errors"

// combine recovers a secret from shares of Shamir's scheme over GF(2^8): each share holds the values of polynomials, one for
// each byte, and the place of the values as its last byte. The secret is the value of the polynomials at zero.
func combine(shares [][]byte) ([]byte, error) {
	size := len(shares[0])
	if size < 2 || len(shares) < 2 {
		return nil, errors.New("sops: too few shares of the data key")
	}
	places := make([]byte, len(shares))
	for i, s := range shares {
		if len(s) != size {
			return nil, errors.New("sops: the shares of the data key differ in length")
		}
		places[i] = s[size-1]
		for _, p := range places[:i] {
			if p == places[i] {
				return nil, errors.New("sops: duplicate share of the data key")
			}
		}
	}
	secret := make([]byte, size-1)
	for i, s := range shares {
		weight := basis(places, i)
		for b := range secret {
			secret[b] ^= multiply(weight, s[b])
		}
	}
	return secret, nil
}

// basis returns the value at zero of the polynomial that is one at the i-th place and zero at all other places.
func basis(places []byte, i int) byte {
	product := byte(1)
	for j, p := range places {
		if j != i {
			product = multiply(product, multiply(p, inverse(p^places[i])))
		}
	}
	return product
}

// multiply returns the product in the field of AES.
func multiply(a, b byte) byte {
	var product byte
	for ; b > 0; b >>= 1 {
		product ^= a * (b & 1)
		carry := a >> 7
		a = a<<1 ^ carry*0x1B
	}
	return product
}

// inverse returns a to the power of 254.
func inverse(a byte) byte {
	result := byte(1)
	for range 254 {
		result = multiply(result, a)
	}
	return result
}
