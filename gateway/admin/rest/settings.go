package rest

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

type settingsOutput struct {
	Body struct {
		Settings []Setting `json:"settings"`
	}
}

func (h *handlers) registerSettings(a huma.API) {
	huma.Register(a, operation("show-config", http.MethodGet, "/v1/config",
		"The effective configuration, with where each value came from", "config"),
		func(context.Context, *struct{}) (*settingsOutput, error) {
			out := &settingsOutput{}
			out.Body.Settings = h.Settings
			return out, nil
		})
}
