// Package api imports what it must not.
package api

import (
	_ "strings"

	_ "github.com/rollcall-mq/rollcall/store"
	_ "github.com/rollcall-mq/rollcall/store/topics"
)
