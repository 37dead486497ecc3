package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/flow"
)

func mountGates(a *API, s Recovery, answers Answers) {
	serve(a, s, offered("gates.list", "Gates, in the order they opened", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/gates"}, Recovery.GatesList)
	serve(a, s, offered("gates.get", "A gate", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/gates/{id}"}, Recovery.GatesGet)
	serve(a, answers, changing(offered("gates.answer", "Answer a gate", flow.RoleOperator)),
		route{method: http.MethodPost, path: "/v1/gates/{id}/answer"}, Answers.AnswerGate)
}

func mountCases(a *API, s Recovery) {
	serve(a, s, agents(offered("cases.list", "Cases, newest first", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/cases"}, Recovery.CasesList)
	serve(a, s, agents(offered("cases.get", "A case", flow.RoleViewer)),
		route{method: http.MethodGet, path: "/v1/cases/{id}"}, Recovery.CasesGet)
	serve(a, s, offered("cases.observed", "What your agent would have done where it is only observed, summed up", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/cases/observed"}, Recovery.CasesObserved)
	serve(a, s, offered("model.usage", "Tokens that the built-in model has used, by day", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/model/usage"}, Recovery.ModelUsage)
	serve(a, s, offered("cases.replay", "Ask an agent about a case again, applying nothing", flow.RoleOperator),
		route{method: http.MethodPost, path: "/v1/cases/{id}/replay"}, Recovery.CasesReplay)
	serve(a, s, offered("agents.test", "Try an agent with a failure", flow.RoleOperator),
		route{method: http.MethodPost, path: "/v1/agents/test"}, Recovery.AgentsTest)
	serve(a, s, agents(overMCP(offered("recovery.schema", "What a recovery agent is given and may answer", flow.RoleViewer))),
		route{method: http.MethodGet, path: "/v1/recovery/schema"}, Recovery.RecoverySchema)
}
