package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// KeySize is the length of a master key in bytes.
const KeySize = 32

// The layout of a sealed record, version 1: version (1 byte), fingerprint of
// the master key (4), salt (32), then nonce, ciphertext and tag as
// [cipher.NewGCMWithRandomNonce] writes them.
const (
	version1    = 1
	markSize    = 4
	saltSize    = 32
	headerSize  = 1 + markSize + saltSize
	dataKeyInfo = "longstop sealed record v1"
	markInfo    = "longstop master key fingerprint v1"
)

// The ways in which a sealed record cannot be opened.
var (
	// ErrOtherKey means that the record was sealed under another master key.
	ErrOtherKey = errors.New("it was sealed under another master key")
	// ErrDamaged means that the record, or the workspace or name that it is
	// opened under, is not what was sealed.
	ErrDamaged = errors.New("the sealed record is damaged or belongs to something else")
	// ErrVersion means that a newer version of Longstop sealed the record.
	ErrVersion = errors.New("it was sealed by a newer version")
)

// Keyring seals and opens records under a master key. Each record has a data
// key of its own, derived from the master key and a random salt, so that no
// number of records wears out a key. It is immutable and safe for concurrent
// use.
type Keyring struct {
	master [KeySize]byte
	mark   [markSize]byte
}

// NewKeyring makes a Keyring of a master key of [KeySize] bytes.
func NewKeyring(master []byte) (*Keyring, error) {
	if len(master) != KeySize {
		return nil, fmt.Errorf("a master key has %d bytes, not %d", KeySize, len(master))
	}
	mark, err := hkdf.Key(sha256.New, master, nil, markInfo, markSize)
	if err != nil {
		return nil, fmt.Errorf("derive fingerprint: %w", err)
	}
	return &Keyring{master: [KeySize]byte(master), mark: [markSize]byte(mark)}, nil
}

// Seal encrypts plain so that only Open with the same workspace and name gives
// it back. Sealing the same twice gives different bytes.
func (k *Keyring) Seal(workspace, name string, plain []byte) ([]byte, error) {
	header := make([]byte, headerSize, headerSize+len(plain)+64)
	header[0] = version1
	copy(header[1:], k.mark[:])
	if _, err := rand.Read(header[1+markSize:]); err != nil {
		return nil, fmt.Errorf("random salt: %w", err)
	}
	aead, err := k.aead(header[1+markSize:])
	if err != nil {
		return nil, err
	}
	return aead.Seal(header, nil, plain, bind(header, workspace, name)), nil
}

// Open decrypts what Seal made. It answers [ErrOtherKey], [ErrDamaged] or
// [ErrVersion].
func (k *Keyring) Open(workspace, name string, sealed []byte) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, ErrDamaged
	}
	if sealed[0] > version1 {
		return nil, ErrVersion
	}
	if sealed[0] != version1 || len(sealed) < headerSize {
		return nil, ErrDamaged
	}
	header := sealed[:headerSize]
	if [markSize]byte(header[1:]) != k.mark {
		return nil, ErrOtherKey
	}
	aead, err := k.aead(header[1+markSize:])
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed[headerSize:], bind(header, workspace, name))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

func (k *Keyring) aead(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, k.master[:], salt, dataKeyInfo, KeySize)
	if err != nil {
		return nil, fmt.Errorf("derive data key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// bind is the additional data of a record: header, workspace and name, each
// with its length so that no two pairs read alike.
func bind(header []byte, workspace, name string) []byte {
	out := make([]byte, 0, len(header)+len(workspace)+len(name)+8)
	out = append(out, header...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(workspace)))
	out = append(out, workspace...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(name)))
	return append(out, name...)
}
