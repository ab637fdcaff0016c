//go:build tools

// Package tools makes promtool's main package a dependency of this module, so that go.mod and
// go.sum pin all that it is built from.
package tools

import _ "github.com/prometheus/prometheus/cmd/promtool"
