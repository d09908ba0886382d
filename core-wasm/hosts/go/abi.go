package corehost

import (
	_ "embed"
	"errors"
	"fmt"
)

// The core that a release of this module goes with: the same bytes as dist/core.wasm of njet-kic. Its source is elsewhere in
// the repository; a module that is fetched by "go get" is complete with it.
//
//go:embed core.wasm
var embeddedCore []byte

// Version of the interface of the core: the major that is spoken, and the least minor.
const (
	abiMajor = 1
	abiMinor = 2
)

// Offsets of the public words of a context, in bytes. Source: core-wasm/ABI.md, "Words of a context".
const (
	wordInput          = 8
	wordNeedCount      = 24
	wordNeeds          = 28
	wordAction         = 32
	wordStatus         = 36
	wordRoute          = 40
	wordShard          = 44
	wordPeers          = 52
	wordPeer           = 56
	wordText           = 60
	wordTextLength     = 64
	wordType           = 68
	wordTypeLength     = 72
	wordSettings       = 76
	wordSettingsLength = 80
	wordOrigin         = 84
	wordRendered       = 88
	wordPosition       = 100
	wordGuard          = 204
	wordNow            = 544
	wordMarks          = 548
	wordHash           = 556
)

// Marks of a choice.
const (
	markBusy       = 1
	markHashed     = 2
	markNewSession = 4
)

const (
	statusOK   = 0
	statusNeed = 1
	statusBusy = 2
	// Also of a call that does not fit the state.
	statusState = -11
)

const (
	// The largest host and target together; what is longer is answered with 414.
	inputSize = 1 << 16
	// Room for a target that grows threefold by escaping, and for bodies.
	outputSize = 1 << 18
	needSize   = 16
	// Ids below this are facts of the connection: address, port, method, protocol.
	factCount = 4
)

// Code says what is wrong with a bundle, an image or a call. The texts are the stable codes of njet-kic's ERRORS.md.
type Code string

// The codes of an [Error].
const (
	CodeABIVersion  Code = "CORE_ABI_VERSION"
	CodeTruncated   Code = "CORE_IMAGE_TRUNCATED"
	CodeMagic       Code = "CORE_IMAGE_MAGIC"
	CodeVersion     Code = "CORE_IMAGE_VERSION"
	CodeChecksum    Code = "CORE_IMAGE_CHECKSUM"
	CodeCorrupt     Code = "CORE_IMAGE_CORRUPT"
	CodeUnsupported Code = "CORE_IMAGE_UNSUPPORTED"
	CodeSource      Code = "CORE_SOURCE_INVALID"
	CodeLimit       Code = "CORE_LIMIT"
	CodeMemory      Code = "CORE_MEMORY"
	CodePointer     Code = "CORE_POINTER"
	CodeState       Code = "CORE_STATE"
)

// Error is a bundle, an image or a call that the core does not take. A request never causes one.
type Error struct {
	Code   Code
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Reason, e.Code) }

var (
	// ErrBusy says that every peer that could be picked has as many requests under way as it may.
	ErrBusy = errors.New("every usable peer has as many requests under way as it may")
	// ErrNoPeer says that no peer is left to be tried.
	ErrNoPeer = errors.New("no peer is left")
	// ErrClosed is what a [Router] answers after Close.
	ErrClosed = errors.New("the router is closed")
)

// TrapError is a core that has stopped. Its instance is gone; a [Router] goes on with a new one.
type TrapError struct{ Cause error }

func (e *TrapError) Error() string { return "the core trapped: " + e.Cause.Error() }

// Unwrap gives what wazero said.
func (e *TrapError) Unwrap() error { return e.Cause }

var statusCodes = map[int32]Code{
	-2: CodeTruncated, -3: CodeMagic, -4: CodeVersion, -5: CodeChecksum, -6: CodeCorrupt, -7: CodeSource, -8: CodeLimit,
	-9: CodeMemory, -10: CodePointer, statusState: CodeState, -12: CodeUnsupported,
}

// statusError is the error for a status below zero.
func statusError(status int32, what string) error {
	code, known := statusCodes[status]
	if !known {
		code = CodeState
	}
	return &Error{code, fmt.Sprintf("%s: the core answered %d", what, status)}
}
