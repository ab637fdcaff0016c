//go:build tools

// Package tools pins the reader of compose files that Docker Compose is built on.
package tools

import _ "github.com/compose-spec/compose-go/v2/cmd"
