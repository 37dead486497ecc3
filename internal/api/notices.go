package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
)

func mountNotices(a *API, s Notices) {
	serve(a, s, offered("notices.list", "What was told to notify.url and what waits to be, newest first", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/notices"}, Notices.NoticesList)
	serve(a, s, changing(offered("notices.test", "Send a signed test notice to notify.url, once", flow.RoleEditor)),
		route{method: http.MethodPost, path: "/v1/notices/test"}, Notices.NoticesTest)
}
