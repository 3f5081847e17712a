// Written by `npm run generate` from the OpenAPI document with this hash:
// sha256:9d2ce7cff7e09a6eff63e5a044d9b9f3d9a3fb690f17be72cee8f32026db1bd8

export interface paths {
    "/agent/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["run_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/agent/vision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["run_vision"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_agents"];
        put?: never;
        post: operations["create_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_agent"];
        put?: never;
        post?: never;
        delete: operations["delete_agent"];
        options?: never;
        head?: never;
        patch: operations["update_agent"];
        trace?: never;
    };
    "/api/agents/{agent}/add": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["add_facts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/capture": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["capture"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_changes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_change"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes/{id}/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["apply_change"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["reject_change"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes/{id}/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["undo_change"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/changes/consolidate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["consolidate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/context": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["build_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/context-calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_context_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/context-calls/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_context_call"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/details": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_details"];
        put?: never;
        post: operations["store_detail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/details/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["read_detail"];
        put?: never;
        post?: never;
        delete: operations["delete_detail"];
        options?: never;
        head?: never;
        patch: operations["hide_detail"];
        trace?: never;
    };
    "/api/agents/{agent}/details/{key}/record": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_detail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["explain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/forget": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["forget_about"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/inject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["inject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_item"];
        put: operations["put_item"];
        post?: never;
        delete: operations["delete_item"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/items/namespaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_namespaces"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/items/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["search_items"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_memories"];
        put?: never;
        post: operations["create_memory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_memory"];
        put?: never;
        post?: never;
        delete: operations["delete_memory"];
        options?: never;
        head?: never;
        patch: operations["update_memory"];
        trace?: never;
    };
    "/api/agents/{agent}/memories/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["approve_memory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/{id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["restore_memory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/{id}/similar": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_similar"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["create_memories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/memories/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["restore_memories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/private-memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_private_memory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_profile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/recall": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["recall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/review": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_for_review"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents/{agent}/workspace/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["approve_workspace"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_events"];
        put?: never;
        post: operations["record_event"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["verify_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chat/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_sessions"];
        put?: never;
        post: operations["create_session"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chat/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_session"];
        put?: never;
        post?: never;
        delete: operations["delete_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chat/sessions/{id}/conversation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["get_conversation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/chat/sessions/{id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_messages"];
        put?: never;
        post: operations["log_turn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/erase": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["erase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["import_file"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/kb/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_documents"];
        put?: never;
        post: operations["create_document"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/kb/documents/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_document"];
        put?: never;
        post?: never;
        delete: operations["delete_document"];
        options?: never;
        head?: never;
        patch: operations["update_document"];
        trace?: never;
    };
    "/api/kb/search": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["search_knowledge"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_keys"];
        put?: never;
        post: operations["create_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete: operations["revoke_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/maintenance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["maintain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/secrets/allow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["allow_secret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/secrets/scan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post: operations["scan_for_secrets"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/skills": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_skills"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_workflows"];
        put?: never;
        post: operations["create_workflow"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_workflow"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workflows/{id}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["list_steps"];
        put?: never;
        post: operations["record_step"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get: operations["get_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AgentBody: {
            active: boolean;
            colour: string;
            /** Format: date-time */
            created_at: string;
            icon: string;
            id: string;
            is_active: boolean;
            knowledge_categories: string[];
            memories_count: components["schemas"]["MemoriesCount"];
            model: string;
            name: string;
            system_prompt: string;
            tools: string[];
            /** Format: date-time */
            updated_at: string;
        };
        AgentPage: {
            items: components["schemas"]["AgentBody"][];
            next_cursor: string | null;
        };
        AgentPatch: {
            colour?: string;
            icon?: string;
            is_active?: boolean;
            knowledge_categories?: string[];
            model?: string;
            name?: string;
            system_prompt?: string;
            tools?: string[];
        };
        AllowSecretAnswer: {
            allowed: number;
        };
        AllowSecretBody: {
            text: string;
        };
        AnswerBody: {
            agent: string;
            call_id: string;
            model: string;
            purposes: string[];
            recalled: components["schemas"]["RecalledBody"][];
            response: string;
            session_id: string;
            tools: components["schemas"]["ToolUseBody"][];
            usage: components["schemas"]["UsageBody"];
        };
        AppearanceBody: {
            /** Format: date-time */
            at: string;
            block: string;
            call_id: string;
            left_out: string;
            session_id: string;
        };
        ApprovedWorkspace: {
            approved: number;
        };
        BatchAnswer: {
            results: (components["schemas"]["StoredRecord"] | components["schemas"]["StoredItem"] | components["schemas"]["ErrorBody"])[];
        };
        BlockBody: {
            items: components["schemas"]["ItemBody"][];
            name: string;
            tokens: number;
        };
        CallBody: {
            /** Format: date-time */
            at: string;
            blocks: components["schemas"]["BlockBody"][];
            budget: number;
            id: string;
            layout: components["schemas"]["Layout"];
            session_id: string;
            tokens: number;
            truncations: components["schemas"]["TruncationBody"][];
            user: string | null;
        };
        CallPage: {
            items: components["schemas"]["CallBody"][];
            next_cursor: string | null;
        };
        CaptureBody: {
            duration?: number | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
            output: string;
            session_id?: string | null;
            /** @default  */
            source?: string;
            /** @default  */
            status?: string;
            /** @default command_output */
            type?: string;
        };
        CapturedBody: {
            captured: boolean;
            memory_key: string | null;
            text: string;
        };
        /** @enum {string} */
        ChangeAction: "add" | "edit" | "end";
        ChangeBody: {
            actor: string;
            cause: components["schemas"]["ChangeCause"];
            /** Format: date-time */
            created_at: string;
            decided_at: string | null;
            id: string;
            memories: components["schemas"]["ChangedMemoryBody"][];
            reason: string;
            state: components["schemas"]["ChangeState"];
            text: string;
            user: string | null;
        };
        /** @enum {string} */
        ChangeCause: "add" | "turn" | "consolidation" | "edit";
        ChangedMemoryBody: {
            action: components["schemas"]["ChangeAction"];
            after: {
                [key: string]: unknown;
            };
            before: {
                [key: string]: unknown;
            };
            former_text: string | null;
            id: string;
            new_version: number | null;
            text: string;
            version: number | null;
        };
        ChangePage: {
            items: components["schemas"]["ChangeBody"][];
            next_cursor: string | null;
        };
        /** @enum {string} */
        ChangeState: "proposed" | "applied" | "rejected" | "undone";
        /** @enum {string} */
        Compression: "none" | "gzip" | "zstd";
        ContextBody: {
            blocks: components["schemas"]["BlockBody"][];
            budget: number;
            id: string;
            layout: components["schemas"]["Layout"];
            messages: {
                [key: string]: unknown;
            }[];
            stable_messages: number;
            tokens: number;
            truncations: components["schemas"]["TruncationBody"][];
        };
        ContextRequest: {
            budget?: number | null;
            layout?: ("standard" | "cache_stable") | null;
            message: string;
            min_relevance?: number | null;
            participants?: string[] | null;
            session_id?: string | null;
            system_prompt?: string | null;
            tool_results?: (string | components["schemas"]["ToolResultBody"])[] | null;
            user?: string | null;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        ConversationBody: {
            messages: components["schemas"]["PromptMessage"][];
            omitted_count: number;
            session_id: string;
            summarizedCount: number;
            summary: string;
        };
        DetailBody: {
            chars: number;
            content_hash: string;
            /** Format: date-time */
            created_at: string;
            description: string;
            is_active: boolean;
            lines: number;
            memory_key: string;
            metadata: {
                [key: string]: unknown;
            };
            reference: string;
            session_id: string | null;
            size: number;
            summary: string;
            type: string;
            user: string | null;
        };
        DetailList: {
            items: components["schemas"]["DetailBody"][];
            next_cursor: string | null;
        };
        DetailPatch: {
            is_active?: boolean;
        };
        DocumentBody: {
            category: string;
            content_hash: string;
            /** Format: date-time */
            created_at: string;
            flag: string | null;
            id: string;
            is_published: boolean;
            metadata: {
                [key: string]: unknown;
            };
            source: string;
            title: string;
            /** Format: date-time */
            updated_at: string;
        };
        /** @enum {string} */
        DocumentChange: "added" | "updated" | "unchanged";
        DocumentPage: {
            items: components["schemas"]["DocumentBody"][];
            next_cursor: string | null;
        };
        DocumentPatch: {
            category?: string;
            is_published?: boolean;
            metadata?: {
                [key: string]: unknown;
            };
            title?: string;
        };
        DroppedBody: {
            reason: string;
            text: string;
            turn: number | null;
        };
        /** @enum {string} */
        EndedAs: "superseded" | "wrong" | "over";
        EraseBody: {
            compact?: boolean | null;
            /** @default false */
            dry_run?: boolean;
            subject: string;
            with_agents?: boolean | null;
        };
        ErrorBody: {
            code: string;
            error: string;
            /**
             * @default false
             * @constant
             */
            ok?: false;
        };
        EventBody: {
            action: string;
            actor: string;
            agent_id: string | null;
            /** Format: date-time */
            at: string;
            hash: string;
            id: number;
            is_damaged: boolean;
            message: string;
            meta: {
                [key: string]: unknown;
            };
            previous_hash: string;
        };
        EventPage: {
            items: components["schemas"]["EventBody"][];
            next_cursor: string | null;
        };
        ExplainAnswer: {
            hit: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            id: string;
            /** @default [] */
            items?: components["schemas"]["ExplainedItem"][];
            missing: components["schemas"]["MissingBody"][];
            outcome: components["schemas"]["Outcome"];
            prompts: components["schemas"]["AppearanceBody"][];
            rank: number | null;
            rival: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            sentence: string;
            text: string;
            words: string[];
        };
        ExplainBody: {
            as_of?: string | null;
            /** @default false */
            block?: boolean;
            id?: string | null;
            kinds?: string[] | null;
            /** @default 5 */
            limit?: number;
            min_relevance?: number | null;
            origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
            purpose?: ("task_intake" | "tool_selection" | "decision_memo" | "content" | "delegation") | null;
            query: string;
            /** @default false */
            records?: boolean;
            scope?: ("user" | "workspace" | "session") | null;
            session_id?: string | null;
            since?: string | null;
            sources?: string[] | null;
            /** @default  */
            tag?: string;
            until?: string | null;
            user?: string | null;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        ExplainedItem: {
            hit: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            id: string;
            missing: components["schemas"]["MissingBody"][];
            outcome: components["schemas"]["Outcome"];
            prompts: components["schemas"]["AppearanceBody"][];
            rank: number | null;
            rival: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            sentence: string;
            text: string;
            words: string[];
        };
        FactBody: {
            category: string | null;
            id: string;
            kind: components["schemas"]["Kind"];
            origin: components["schemas"]["Origin"];
            replaces: string | null;
            text: string;
            turn: number;
            version: number;
        };
        FactParts: {
            attribute: string | null;
            subject: string;
            value: string | null;
        };
        FactsAnswer: {
            added: (components["schemas"]["WholeFact"] | components["schemas"]["FactBody"])[];
            change: string | null;
            dropped: components["schemas"]["DroppedBody"][];
            dry_run: boolean;
            problem: string;
            /** @enum {string} */
            source: "rules" | "model";
            superseded: (components["schemas"]["WholeFact"] | components["schemas"]["FactBody"])[];
            updated: (components["schemas"]["WholeFact"] | components["schemas"]["FactBody"])[];
        };
        FindingBody: {
            agent: string;
            excerpt: string;
            id: string;
            is_cleared: boolean;
            table: string;
        };
        ForgottenAnswer: {
            candidates: components["schemas"]["MemoryBody"][];
            forgotten: components["schemas"]["MemoryBody"][];
        };
        FoundItems: {
            items: components["schemas"]["KeyedItem"][];
            next_offset: number | null;
        };
        HeadBody: {
            hash: string;
            id: number;
        };
        HealthBody: {
            embedder: string;
            /** @enum {string} */
            engine: "sqlite" | "postgres";
            maintenance?: components["schemas"]["MaintenanceBody"] | null;
            problems: string[];
            /** @enum {string} */
            status: "ok" | "degraded";
            version: string;
        };
        HealthStatus: {
            /** @enum {string} */
            status: "ok" | "degraded";
        };
        HitBody: {
            agent_id: string | null;
            /** Format: date-time */
            created_at: string;
            explain: string;
            heading: string;
            id: string;
            page: number | null;
            parts: {
                [key: string]: number;
            };
            relevance: number;
            score: number;
            source: components["schemas"]["Source"];
            text: string;
            title: string;
            weak: boolean;
        };
        ImportedBody: {
            added: {
                [key: string]: number;
            };
            dry_run: boolean;
            flagged: components["schemas"]["RefusedBody"][];
            flagged_count: number;
            format: string;
            present: {
                [key: string]: number;
            };
            problems: string[];
            refused: components["schemas"]["RefusedBody"][];
            refused_count: number;
        };
        IngestedBody: {
            category: string;
            change: components["schemas"]["DocumentChange"];
            content_hash: string;
            /** Format: date-time */
            created_at: string;
            flag: string | null;
            id: string;
            is_published: boolean;
            metadata: {
                [key: string]: unknown;
            };
            passages: number;
            removed_secrets: components["schemas"]["RemovedSecretBody"][];
            source: string;
            title: string;
            /** Format: date-time */
            updated_at: string;
        };
        InjectAnswer: {
            text: string | null;
        };
        InjectBody: {
            message: string;
            mode?: ("relevant" | "recent_only" | "off" | "hybrid") | null;
        };
        IssuedKeyBody: {
            agents: string[];
            /** Format: date-time */
            created_at: string;
            expires_at: string | null;
            id: string;
            key: string;
            last_used_at: string | null;
            name: string;
            revoked_at: string | null;
            scope: components["schemas"]["KeyScope"];
            trust: components["schemas"]["Origin"] | null;
            user: string | null;
        };
        ItemBody: {
            digest: string;
            id: string;
            left_out: string;
            score: number | null;
            source: string;
        };
        ItemSearch: {
            /** @default 10 */
            limit?: number;
            /** @default [] */
            namespace?: string[];
            /** @default 0 */
            offset?: number;
            query?: string | null;
            /** @default true */
            refresh?: boolean;
            user?: string | null;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        KeptMemory: {
            archived_at: string | null;
            category: string | null;
            /** Format: date-time */
            created_at: string;
            ended_as: components["schemas"]["EndedAs"] | null;
            ended_by: string | null;
            expires_at: string | null;
            fact: components["schemas"]["FactParts"] | null;
            flag: string | null;
            forgotten_at: string | null;
            held_at: string | null;
            id: string;
            importance: number;
            item_key: string | null;
            kind: components["schemas"]["Kind"];
            last_retrieved_at: string | null;
            metadata: {
                [key: string]: unknown;
            };
            namespace: string | null;
            origin: components["schemas"]["Origin"];
            role: components["schemas"]["Role"];
            scope: components["schemas"]["Scope"];
            session_id: string | null;
            similar: components["schemas"]["SimilarBody"][];
            sources: string[];
            state: components["schemas"]["State"];
            supersedes: string | null;
            tags: string[];
            text: string;
            updated_at: string | null;
            user: string | null;
            valid_from: string | null;
            valid_to: string | null;
            version: number;
        };
        KeyBody: {
            agents: string[];
            /** Format: date-time */
            created_at: string;
            expires_at: string | null;
            id: string;
            last_used_at: string | null;
            name: string;
            revoked_at: string | null;
            scope: components["schemas"]["KeyScope"];
            trust: components["schemas"]["Origin"] | null;
            user: string | null;
        };
        KeyedItem: {
            /** Format: date-time */
            created_at: string;
            expires_at: string | null;
            id: string;
            key: string;
            namespace: string[];
            score: number | null;
            /** Format: date-time */
            updated_at: string;
            user: string | null;
            value: unknown;
            version: number;
        };
        KeyPage: {
            items: components["schemas"]["KeyBody"][];
            next_cursor: string | null;
        };
        /** @enum {string} */
        KeyScope: "read" | "write" | "admin" | "operator";
        /** @enum {string} */
        Kind: "core" | "journal" | "note" | "episode" | "item";
        KnowledgeQuestion: {
            /** @default  */
            agent?: string;
            /** @default [] */
            categories?: string[];
            /** @default 5 */
            limit?: number;
            min_relevance?: number | null;
            query: string;
            /** @default false */
            records?: boolean;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        /** @enum {string} */
        Layout: "standard" | "cache_stable";
        MaintenanceAnswer: {
            agents: number;
            archived: number;
            deleted: number;
            embedded: number;
            embedding_problem: string;
            examined: number;
            expired: number;
            faded: number;
            gisted: number;
            items: number;
            merged: number;
            over_quota: number;
            swept: number;
        };
        MaintenanceBody: {
            counts: {
                [key: string]: number;
            } | null;
            error: string;
            last_at: string | null;
            next_at: string | null;
        };
        MemoriesCount: {
            core: number;
            episode: number;
            item: number;
            journal: number;
            note: number;
        };
        MemoryBatch: {
            /** @default false */
            atomic?: boolean;
            items: {
                category?: string | null;
                created_at?: string | null;
                expires_at?: string | null;
                importance?: number | null;
                /**
                 * @default note
                 * @enum {string}
                 */
                kind?: "core" | "journal" | "note" | "episode" | "item";
                metadata?: {
                    [key: string]: unknown;
                } | null;
                origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
                role?: ("user" | "assistant" | "system" | "tool_result") | null;
                scope?: ("user" | "workspace" | "session") | null;
                session_id?: string | null;
                supersedes?: string | null;
                /** @default [] */
                tags?: string[];
                text: string;
                user?: string | null;
                valid_from?: string | null;
            }[];
            /** @default false */
            records?: boolean;
        };
        MemoryBody: {
            archived_at: string | null;
            category: string | null;
            /** Format: date-time */
            created_at: string;
            ended_as: components["schemas"]["EndedAs"] | null;
            ended_by: string | null;
            expires_at: string | null;
            fact: components["schemas"]["FactParts"] | null;
            flag: string | null;
            forgotten_at: string | null;
            held_at: string | null;
            id: string;
            importance: number;
            item_key: string | null;
            kind: components["schemas"]["Kind"];
            last_retrieved_at: string | null;
            metadata: {
                [key: string]: unknown;
            };
            namespace: string | null;
            origin: components["schemas"]["Origin"];
            role: components["schemas"]["Role"];
            scope: components["schemas"]["Scope"];
            session_id: string | null;
            sources: string[];
            state: components["schemas"]["State"];
            supersedes: string | null;
            tags: string[];
            text: string;
            updated_at: string | null;
            user: string | null;
            valid_from: string | null;
            valid_to: string | null;
            version: number;
        };
        MemoryPage: {
            items: components["schemas"]["MemoryBody"][];
            next_cursor: string | null;
        };
        MemoryPatch: {
            importance?: number;
            metadata?: {
                [key: string]: unknown;
            };
            tags?: string[];
            text?: string;
            version?: number;
        };
        MessageBody: {
            content: string;
            /** Format: date-time */
            created_at: string;
            position: number;
            /** @enum {string} */
            role: "user" | "assistant";
            session_id: string;
        };
        MessagePage: {
            items: components["schemas"]["MessageBody"][];
            next_cursor: string | null;
        };
        MissingBody: {
            reason: string;
            source: string;
        };
        NamespacePage: {
            items: string[][];
            next_offset: number | null;
        };
        NewAgent: {
            colour?: string;
            icon?: string;
            id: string;
            is_active?: boolean;
            knowledge_categories?: string[];
            model?: string;
            name?: string;
            system_prompt?: string;
            tools?: string[];
        };
        NewDetail: {
            content: string;
            /** @default  */
            description?: string;
            metadata?: {
                [key: string]: unknown;
            } | null;
            session_id?: string | null;
            /** @default text */
            type?: string;
        };
        NewEvent: {
            action: string;
            agent_id?: string | null;
            message: string;
            meta?: {
                [key: string]: unknown;
            };
        };
        NewFacts: {
            /** @default false */
            dry_run?: boolean;
            messages: {
                [key: string]: unknown;
            }[];
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @default false */
            records?: boolean;
            session_id?: string | null;
            user?: string | null;
        };
        NewItem: {
            index?: string[] | boolean | null;
            key: string;
            namespace: string[];
            origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
            /** @default false */
            refresh?: boolean;
            ttl?: number | null;
            user?: string | null;
            value: unknown;
            version?: number | null;
        };
        NewKey: {
            agents?: string[] | null;
            expires_at?: string | null;
            /** @default  */
            name?: string;
            /** @enum {string} */
            scope: "read" | "write" | "admin" | "operator";
            trust?: ("user" | "agent" | "tool" | "import" | "model") | null;
            user?: string | null;
        };
        NewMemory: {
            category?: string | null;
            created_at?: string | null;
            expires_at?: string | null;
            importance?: number | null;
            /**
             * @default note
             * @enum {string}
             */
            kind?: "core" | "journal" | "note" | "episode" | "item";
            metadata?: {
                [key: string]: unknown;
            } | null;
            origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
            role?: ("user" | "assistant" | "system" | "tool_result") | null;
            scope?: ("user" | "workspace" | "session") | null;
            session_id?: string | null;
            supersedes?: string | null;
            /** @default [] */
            tags?: string[];
            text: string;
            user?: string | null;
            valid_from?: string | null;
        };
        NewSession: {
            agent_id: string;
            id?: string | null;
            metadata?: {
                [key: string]: unknown;
            } | null;
            user?: string | null;
        };
        NewStep: {
            agent_id?: string | null;
            /** @default false */
            is_new?: boolean;
            /** @default  */
            output?: string;
            /** @default completed */
            status?: string;
            step: string;
        };
        NewTurn: {
            agent_id?: string | null;
            assistant: string;
            category?: string | null;
            expires_at?: string | null;
            remember?: boolean | null;
            user: string;
            user_id?: string | null;
        };
        NewWorkflow: {
            name: string;
        };
        /** @enum {string} */
        Origin: "user" | "agent" | "tool" | "import" | "model";
        /** @enum {string} */
        Outcome: "recalled" | "out_ranked" | "below_threshold" | "missing" | "expired" | "superseded" | "archived" | "held" | "later" | "filtered" | "double" | "not_embedded" | "no_match" | "unanswered";
        PartBody: {
            content: string;
            first_line: number | null;
            last_line: number | null;
            matches: number | null;
            memory_key: string;
            next_offset: number | null;
            offset: number;
            remaining: string;
            total: number;
            total_lines: number;
        };
        PassageBody: {
            position: number;
            text: string;
        };
        PassageHit: {
            category: string;
            document_id: string;
            heading: string;
            id: string;
            page: number | null;
            parts: {
                [key: string]: number;
            };
            relevance: number;
            score: number;
            source: components["schemas"]["Source"];
            text: string;
            title: string;
            weak: boolean;
        };
        PrivateMemory: {
            text: string | null;
        };
        ProfileAnswer: {
            facts: components["schemas"]["MemoryBody"][];
            text: string;
        };
        PromptMessage: {
            content: string;
            /** @enum {string} */
            role: "system" | "user" | "assistant";
        };
        RecallAnswer: {
            heading: string;
            hits: (components["schemas"]["WholeHit"] | components["schemas"]["HitBody"])[];
            missing: components["schemas"]["MissingBody"][];
        };
        RecallBody: {
            as_of?: string | null;
            /** @default false */
            block?: boolean;
            kinds?: string[] | null;
            /** @default 5 */
            limit?: number;
            min_relevance?: number | null;
            origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
            purpose?: ("task_intake" | "tool_selection" | "decision_memo" | "content" | "delegation") | null;
            query: string;
            /** @default false */
            records?: boolean;
            scope?: ("user" | "workspace" | "session") | null;
            session_id?: string | null;
            since?: string | null;
            sources?: string[] | null;
            /** @default  */
            tag?: string;
            until?: string | null;
            user?: string | null;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        RecalledBody: {
            block: string;
            id: string;
            score: number | null;
            source: string;
        };
        ReceiptBody: {
            /** Format: date-time */
            at: string;
            cleared: {
                [key: string]: number;
            };
            events: number[];
            found: components["schemas"]["FindingBody"][];
            hash: string;
            is_dry_run: boolean;
            remains: string[];
            remnants: string[];
            removed: {
                [key: string]: number;
            };
            subject: string;
            subject_hash: string;
            tenant: string;
        };
        RefusedBody: {
            place: string;
            reason: string;
        };
        RemovedSecretBody: {
            place: string;
            rule: string;
        };
        RenderedRecall: {
            block: string | null;
            heading: string;
            hits: (components["schemas"]["WholeHit"] | components["schemas"]["HitBody"])[];
            missing: components["schemas"]["MissingBody"][];
        };
        RestoreAnswer: {
            ids: string[];
            items: components["schemas"]["MemoryBody"][];
            restored: number;
        };
        RestoreBody: {
            ids?: string[] | null;
            kind?: ("core" | "journal" | "note" | "episode" | "item") | null;
            origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
            scope?: ("user" | "workspace" | "session") | null;
            session_id?: string | null;
            since?: string | null;
            state?: ("live" | "expired" | "archived" | "held" | "all") | null;
            /** @default  */
            tag?: string;
            until?: string | null;
            where?: string | {
                [key: string]: unknown;
            } | null;
        };
        /** @enum {string} */
        Role: "user" | "assistant" | "system" | "tool_result";
        RunBody: {
            agent?: string | null;
            prompt: string;
            session_id?: string | null;
            /** @default false */
            stream?: boolean;
        };
        ScanAnswer: {
            items: components["schemas"]["SightingBody"][];
        };
        /** @enum {string} */
        Scope: "user" | "workspace" | "session";
        SearchAnswer: {
            hits: (components["schemas"]["WholePassage"] | components["schemas"]["PassageHit"])[];
        };
        SeenBlockBody: {
            items: components["schemas"]["SeenItemBody"][];
            name: string;
            tokens: number;
        };
        SeenCallBody: {
            /** Format: date-time */
            at: string;
            blocks: components["schemas"]["SeenBlockBody"][];
            budget: number;
            id: string;
            layout: components["schemas"]["Layout"];
            session_id: string;
            tokens: number;
            truncations: components["schemas"]["TruncationBody"][];
            user: string | null;
        };
        SeenItemBody: {
            digest: string;
            id: string;
            left_out: string;
            score: number | null;
            since: string;
            source: string;
            text: string | null;
        };
        SessionBody: {
            agent_id: string;
            /** Format: date-time */
            created_at: string;
            id: string;
            message_count: number;
            metadata: {
                [key: string]: unknown;
            };
            summarizedCount: number;
            summary: string;
            /** Format: date-time */
            updated_at: string;
            user: string | null;
        };
        SessionPage: {
            items: components["schemas"]["SessionBody"][];
            next_cursor: string | null;
        };
        SightingBody: {
            agent: string | null;
            id: string;
            rules: string[];
            shelf: string;
        };
        SimilarBody: {
            id: string;
            text: string;
        };
        SkillBody: {
            agents: string[];
            body: string;
            description: string;
            meta: {
                [key: string]: unknown;
            };
            name: string;
        };
        SkillPage: {
            items: components["schemas"]["SkillBody"][];
            next_cursor: string | null;
            problems: string[];
        };
        /** @enum {string} */
        Source: "memory" | "audit" | "workflow" | "knowledge";
        /** @enum {string} */
        State: "live" | "expired" | "archived" | "held";
        StepBody: {
            agent_id: string | null;
            /** Format: date-time */
            completed_at: string;
            id: string;
            name: string;
            output: string;
            position: number;
            status: string;
            workflow_id: string;
            workflow_name: string;
        };
        StepPage: {
            items: components["schemas"]["StepBody"][];
            next_cursor: string | null;
        };
        StoredItem: {
            id: string;
            /**
             * @default true
             * @constant
             */
            ok?: true;
        };
        StoredRecord: {
            id: string;
            memory: components["schemas"]["MemoryBody"];
            /**
             * @default true
             * @constant
             */
            ok?: true;
        };
        ToolResultBody: {
            content: string;
            /** @default  */
            name?: string;
        };
        ToolUseBody: {
            name: string;
            ok: boolean;
        };
        TruncationBody: {
            block: string;
            dropped_references: string[];
            message: string;
            references: string[];
            sources: string[];
            step: string;
            tokens_removed: number;
        };
        UsageBody: {
            input_tokens: number;
            output_tokens: number;
            requests: number;
            tool_calls: number;
        };
        VerifyAnswer: {
            broken: number[];
            broken_at: number | null;
            events: number;
            head: components["schemas"]["HeadBody"];
            keyed_from: number | null;
            ok: boolean;
            problem: string;
        };
        VersionBody: {
            importance: number;
            memory_id: string;
            metadata: {
                [key: string]: unknown;
            };
            /** Format: date-time */
            replaced_at: string;
            tags: string[];
            text: string;
            version: number;
        };
        VersionPage: {
            items: components["schemas"]["VersionBody"][];
            next_cursor: string | null;
        };
        WhatToForget: {
            about: string;
            user?: string | null;
        };
        WholeConversation: {
            messages: components["schemas"]["PromptMessage"][];
            omitted_count: number;
            session_id: string;
            summarizedCount: number;
            summary: string;
            turns: components["schemas"]["MessageBody"][];
        };
        WholeDocument: {
            category: string;
            content_hash: string;
            /** Format: date-time */
            created_at: string;
            flag: string | null;
            id: string;
            is_published: boolean;
            metadata: {
                [key: string]: unknown;
            };
            passages: components["schemas"]["PassageBody"][];
            source: string;
            title: string;
            /** Format: date-time */
            updated_at: string;
        };
        WholeExplanation: {
            hit: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            hits: (components["schemas"]["WholeHit"] | components["schemas"]["HitBody"])[];
            id: string;
            /** @default [] */
            items?: components["schemas"]["ExplainedItem"][];
            missing: components["schemas"]["MissingBody"][];
            outcome: components["schemas"]["Outcome"];
            prompts: components["schemas"]["AppearanceBody"][];
            rank: number | null;
            rival: components["schemas"]["WholeHit"] | components["schemas"]["HitBody"] | null;
            sentence: string;
            text: string;
            words: string[];
        };
        WholeFact: {
            category: string | null;
            id: string;
            kind: components["schemas"]["Kind"];
            memory: components["schemas"]["MemoryBody"];
            origin: components["schemas"]["Origin"];
            replaces: string | null;
            text: string;
            turn: number;
            version: number;
        };
        WholeHit: {
            agent_id: string | null;
            /** Format: date-time */
            created_at: string;
            document: components["schemas"]["DocumentBody"] | null;
            explain: string;
            heading: string;
            id: string;
            memory: components["schemas"]["MemoryBody"] | null;
            page: number | null;
            parts: {
                [key: string]: number;
            };
            relevance: number;
            score: number;
            source: components["schemas"]["Source"];
            text: string;
            title: string;
            weak: boolean;
            weights: {
                [key: string]: number;
            };
        };
        WholePassage: {
            category: string;
            /** Format: date-time */
            created_at: string;
            document: components["schemas"]["DocumentBody"];
            document_id: string;
            heading: string;
            id: string;
            page: number | null;
            parts: {
                [key: string]: number;
            };
            relevance: number;
            score: number;
            source: components["schemas"]["Source"];
            text: string;
            title: string;
            weak: boolean;
            weights: {
                [key: string]: number;
            };
        };
        WorkflowBody: {
            /** Format: date-time */
            created_at: string;
            id: string;
            name: string;
        };
        WorkflowPage: {
            items: components["schemas"]["WorkflowBody"][];
            next_cursor: string | null;
        };
    };
    responses: {
        Error400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error422: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
        Error503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ErrorBody"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    run_agent: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RunBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AnswerBody"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    run_vision: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    agent?: string | null;
                    images: string[];
                    prompt: string;
                    session_id?: string | null;
                    /** @default false */
                    stream?: boolean;
                };
                "multipart/form-data": {
                    agent?: string;
                    images: string[];
                    prompt: string;
                    session_id?: string;
                    stream?: boolean;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AnswerBody"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_agents: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_agent: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAgent"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    update_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgentPatch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    add_facts: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewFacts"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactsAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    capture: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CaptureBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CapturedBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_changes: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                state?: "proposed" | "applied" | "rejected" | "undone" | "all";
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangePage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_change: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    apply_change: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    reject_change: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    undo_change: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangeBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    consolidate: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChangePage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    build_context: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ContextRequest"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContextBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_context_calls: {
        parameters: {
            query?: {
                cursor?: string;
                item?: string | null;
                limit?: number;
                session_id?: string;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_context_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SeenCallBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_details: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                q?: string;
                session_id?: string | null;
                visible?: "shown" | "hidden" | "all";
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DetailList"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    store_detail: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDetail"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DetailBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    read_detail: {
        parameters: {
            query?: {
                context?: number;
                grep?: string | null;
                head?: number | null;
                json_path?: string | null;
                limit?: number | null;
                lines?: string | null;
                offset?: number;
                tail?: number | null;
            };
            header?: never;
            path: {
                agent: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PartBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_detail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    hide_detail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DetailPatch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DetailBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_detail: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DetailBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    explain: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExplainBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeExplanation"] | components["schemas"]["ExplainAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    forget_about: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhatToForget"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ForgottenAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    inject: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["InjectBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["InjectAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_item: {
        parameters: {
            query: {
                key: string;
                namespace: string;
                refresh?: boolean;
                user?: string | null;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyedItem"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    put_item: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewItem"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyedItem"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_item: {
        parameters: {
            query: {
                key: string;
                namespace: string;
                user?: string | null;
                version?: number | null;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_namespaces: {
        parameters: {
            query?: {
                limit?: number;
                max_depth?: number | null;
                offset?: number;
                prefix?: string;
                suffix?: string;
                user?: string | null;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NamespacePage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    search_items: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemSearch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundItems"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_memories: {
        parameters: {
            query?: {
                as_of?: string | null;
                cursor?: string;
                kind?: ("core" | "journal" | "note" | "episode" | "item") | null;
                limit?: number;
                origin?: ("user" | "agent" | "tool" | "import" | "model") | null;
                q?: string;
                scope?: ("user" | "workspace" | "session") | null;
                session_id?: string | null;
                since?: string | null;
                state?: ("live" | "expired" | "archived" | "held" | "all") | null;
                tag?: string;
                until?: string | null;
                user?: string | null;
                where?: string;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_memory: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMemory"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeptMemory"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    update_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryPatch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    approve_memory: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_versions: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    restore_memory: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_similar: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_memories: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryBatch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    restore_memories: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RestoreBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RestoreAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_private_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PrivateMemory"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_profile: {
        parameters: {
            query?: {
                subject?: string | null;
                user?: string | null;
            };
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProfileAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    recall: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecallBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenderedRecall"] | components["schemas"]["RecallAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_for_review: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    approve_workspace: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApprovedWorkspace"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_events: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                q?: string;
                where?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    record_event: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewEvent"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    verify_audit: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VerifyAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                agent?: string;
                cursor?: string;
                limit?: number;
                user?: string | null;
                where?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_session: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSession"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_session: {
        parameters: {
            query?: {
                agent?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_session: {
        parameters: {
            query?: {
                agent?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_conversation: {
        parameters: {
            query?: {
                agent?: string;
                limit?: number | null;
                records?: boolean;
            };
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeConversation"] | components["schemas"]["ConversationBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_messages: {
        parameters: {
            query?: {
                agent?: string;
                cursor?: string;
                limit?: number;
                user?: string | null;
                where?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    log_turn: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTurn"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    erase: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EraseBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceiptBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    export: {
        parameters: {
            query?: {
                compression?: components["schemas"]["Compression"];
                user?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/gzip": string;
                    "application/x-ndjson": string;
                    "application/zstd": string;
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    import_file: {
        parameters: {
            query?: {
                agent?: string | null;
                dry_run?: boolean;
                format?: string | null;
                merge?: boolean;
                remember?: boolean;
                trusted?: boolean;
                with_erased?: boolean;
            };
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
                "multipart/form-data": {
                    /** Format: binary */
                    file: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportedBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_documents: {
        parameters: {
            query?: {
                category?: string;
                cursor?: string;
                limit?: number;
                where?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DocumentPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_document: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    category?: string | null;
                    is_published?: boolean | null;
                    metadata?: {
                        [key: string]: unknown;
                    } | null;
                    secrets?: ("redact" | "reject") | null;
                    text: string;
                    title?: string | null;
                };
                "multipart/form-data": {
                    category?: string;
                    /** Format: binary */
                    file: string;
                    is_published?: boolean;
                    metadata?: string;
                    /** @enum {string} */
                    secrets?: "redact" | "reject";
                    title?: string;
                };
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IngestedBody"];
                };
            };
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IngestedBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_document: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WholeDocument"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    delete_document: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    update_document: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DocumentPatch"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DocumentBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    search_knowledge: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["KnowledgeQuestion"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_keys: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_key: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IssuedKeyBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    revoke_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    maintain: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MaintenanceAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    allow_secret: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AllowSecretBody"];
            };
        };
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AllowSecretAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    scan_for_secrets: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScanAnswer"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_skills: {
        parameters: {
            query?: {
                agent?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SkillPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_workflows: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowPage"];
                };
            };
            400: components["responses"]["Error400"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    create_workflow: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWorkflow"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowBody"];
                };
            };
            400: components["responses"]["Error400"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_workflow: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    list_steps: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StepPage"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    record_step: {
        parameters: {
            query?: never;
            header?: {
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewStep"];
            };
        };
        responses: {
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StepBody"];
                };
            };
            400: components["responses"]["Error400"];
            404: components["responses"]["Error404"];
            409: components["responses"]["Error409"];
            413: components["responses"]["Error413"];
            422: components["responses"]["Error422"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthBody"] | components["schemas"]["HealthStatus"];
                };
            };
            400: components["responses"]["Error400"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
    get_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            400: components["responses"]["Error400"];
            429: components["responses"]["Error429"];
            503: components["responses"]["Error503"];
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorBody"];
                };
            };
        };
    };
}
