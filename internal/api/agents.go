package api

import (
	"net/http"

	"github.com/longstop-dev/longstop/internal/agent/registry"
	"github.com/longstop-dev/longstop/internal/flow"
)

func mountAgents(a *API, s Agents) {
	serve(a, s, changing(offered("agents.push", "Register a version of an agent that is hosted elsewhere", flow.RoleEditor)),
		route{method: http.MethodPost, path: "/v1/agents", status: http.StatusCreated, at: func(out any) string {
			if m := out.(*registry.PushOut); m.AgentID != "" {
				return "/v1/agents/" + m.AgentID
			}
			return ""
		}}, Agents.Push)
	serve(a, s, offered("agents.list", "The workspace's agents", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/agents"}, Agents.ListAgents)
	serve(a, s, offered("agents.get", "An agent and its versions", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/agents/{id}"}, Agents.GetAgent)
	serve(a, s, changing(offered("agents.remove", "Take an agent out of the registry", flow.RoleEditor)),
		route{method: http.MethodDelete, path: "/v1/agents/{id}"}, Agents.RemoveAgent)
}

func mountAgentServices(a *API, s AgentServices) {
	serve(a, s, changing(offered("services.create", "Make an Agent Service, or import its key", flow.RoleOwner)),
		route{method: http.MethodPost, path: "/v1/agent-services", status: http.StatusCreated}, AgentServices.CreateService)
	serve(a, s, offered("services.list", "The workspace's Agent Services", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/agent-services"}, AgentServices.ListServices)
	serve(a, s, changing(offered("services.rotate", "Give an Agent Service's agents a new key, and move their connections", flow.RoleOwner)),
		route{method: http.MethodPost, path: "/v1/agent-services/{key}/rotate"}, AgentServices.Rotate)
	serve(a, s, changing(offered("buckets.create", "Make a bucket for manifests", flow.RoleOwner)),
		route{method: http.MethodPost, path: "/v1/buckets", status: http.StatusCreated}, AgentServices.CreateBucket)
	serve(a, s, offered("buckets.list", "The workspace's buckets", flow.RoleViewer),
		route{method: http.MethodGet, path: "/v1/buckets"}, AgentServices.ListBuckets)
	serve(a, s, changing(offered("buckets.reindex", "Build the index of a bucket's manifests again", flow.RoleEditor)),
		route{method: http.MethodPost, path: "/v1/buckets/{id}/reindex"}, AgentServices.Reindex)
}
