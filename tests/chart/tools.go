//go:build tools

// Package tools makes Helm's main package a dependency of this module, so that go.mod and go.sum pin all
// that it is built from.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
